"""The uplinks and the way down, joined to the gateway."""
