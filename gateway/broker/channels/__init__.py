"""Channels: shared subscriptions with a queue of their own (docs/use/channels.md)."""
