"""When a message was really accepted, whatever its gateway's clock said."""
