"""The lanes of the uplink by name, as rows of the outbox carry them."""

LIVE = "live"
"""What was accepted while the link is up, and goes first."""

BACKLOG = "backlog"
"""What waited for the link, or is always sent behind live messages."""

RECALL = "recall"
"""What the fleet has asked for again: behind everything else, and nothing the ledger counts."""
