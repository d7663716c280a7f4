"""What goes up to the fleet, and what comes down: the parts, joined to the gateway."""
