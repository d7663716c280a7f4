"""What all sessions hold back together, bounded in bytes."""

from gateway.mqtt.message import Message
from gateway.mqtt.message_size import message_size

MAXIMUM_BYTES_TOTAL = 128 * 1024 * 1024
"""Bytes of what all sessions hold: a quarter of the smallest board's memory."""

DELIVERY_OVERHEAD = 100
"""Bytes of a delivery beside its message: the object and its place in the queue."""


class QueueMemory:
    """Counts messages in queues, each once however many sessions share it, and their deliveries.

    Wills and the packet identifiers of QoS 2 messages count too. When it is full, no session takes
    more of either; what is there stays. Whoever would have added something counts the refusal.
    """

    __slots__ = ("bytes", "deliveries", "maximum_bytes", "messages")

    def __init__(self, maximum_bytes: int = MAXIMUM_BYTES_TOTAL) -> None:
        self.maximum_bytes = maximum_bytes
        self.bytes = 0
        self.messages = 0  # different ones
        self.deliveries = 0

    @property
    def full(self) -> bool:
        """True while nothing more may be held; the last message may have exceeded the bound."""
        return self.bytes >= self.maximum_bytes

    def charge(self, size: int) -> None:
        """Count bytes that a session holds beside messages, or, below 0, holds no more."""
        self.bytes += size

    def add(self, message: Message) -> None:
        """Note that one session more holds the message."""
        if not message.holders:
            self.messages += 1
            self.bytes += message_size(message)
        message.holders += 1
        self.deliveries += 1
        self.bytes += DELIVERY_OVERHEAD

    def remove(self, message: Message) -> None:
        """Note that one of the sessions that `add` was called for holds it no more."""
        message.holders -= 1
        self.deliveries -= 1
        self.bytes -= DELIVERY_OVERHEAD
        if not message.holders:
            self.messages -= 1
            self.bytes -= message_size(message)
