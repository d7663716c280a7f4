"""What a rule would have sent of what the tables hold, before it is deployed."""
