"""Channels: shared subscriptions with a queue of their own (docs/channels.md)."""
