"""What all sessions hold back together, in memory and on disk, bounded in bytes."""

from collections.abc import Iterable

from gateway.mqtt.message import Message
from gateway.mqtt.message_size import message_size
from gateway.session.message_run import MessageRun

MAXIMUM_BYTES_TOTAL = 128 * 1024 * 1024
"""Bytes of what all sessions hold: a quarter of the smallest board's memory."""

MAXIMUM_DISK_BYTES = 1024 * 1024 * 1024
"""Bytes of what all sessions hold on disk; a message that several wait for counts for each."""

MAXIMUM_HEAD_BYTES = 32 * 1024 * 1024
"""Bytes in memory beyond which a queue keeps there no more of what is on disk than what is next."""

DELIVERY_OVERHEAD = 110
"""Bytes of a delivery beside its message: the object and its place in the queue."""


class QueueMemory:
    """Counts messages in queues, each once however many sessions share it, and their deliveries.

    Wills and the packet identifiers of QoS 2 messages count too. When it is full, no session takes
    more of either; what is there stays. Whoever would have added something counts the refusal.

    `disk_bytes` is what queues have on disk. Of that `paged` deliveries, `paged_bytes`, are not in
    memory.
    """

    __slots__ = (
        "bytes",
        "deliveries",
        "disk_bytes",
        "maximum_bytes",
        "maximum_disk_bytes",
        "messages",
        "paged",
        "paged_bytes",
    )

    def __init__(
        self,
        maximum_bytes: int = MAXIMUM_BYTES_TOTAL,
        maximum_disk_bytes: int = MAXIMUM_DISK_BYTES,
    ) -> None:
        self.maximum_bytes = maximum_bytes
        self.maximum_disk_bytes = maximum_disk_bytes
        self.bytes = 0
        self.messages = 0  # different ones
        self.deliveries = 0
        self.disk_bytes = 0
        self.paged = 0
        self.paged_bytes = 0

    @property
    def full(self) -> bool:
        """True while nothing more may be held; the last message may have exceeded the bound."""
        return self.bytes >= self.maximum_bytes

    @property
    def disk_full(self) -> bool:
        """True while nothing more may be held on disk."""
        return self.disk_bytes >= self.maximum_disk_bytes

    @property
    def heads_full(self) -> bool:
        """True while memory is needed for more than what is on disk as well."""
        return self.bytes >= MAXIMUM_HEAD_BYTES

    def keep(self, size: int) -> None:
        """Count bytes that a queue has on disk, or, below 0, has there no more."""
        self.disk_bytes += size

    def page(self, deliveries: int, size: int) -> None:
        """Count deliveries that are on disk alone, or, below 0, are so no more."""
        self.paged += deliveries
        self.paged_bytes += size

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

    def add_all(self, messages: Iterable[Message]) -> int:
        """Do that with each, and return the bytes that they would take alone."""
        deliveries = new = new_bytes = total = 0
        for message in messages:
            size = message.size or message_size(message)
            if not message.holders:
                new += 1
                new_bytes += size
            message.holders += 1
            deliveries += 1
            total += size
        self._count(deliveries, new, new_bytes)
        return total + deliveries * DELIVERY_OVERHEAD

    def remove_all(self, messages: Iterable[Message]) -> int:
        """Do what `remove` does with each, and return the same."""
        deliveries = gone = gone_bytes = total = 0
        for message in messages:
            size = message.size or message_size(message)
            message.holders -= 1
            if not message.holders:
                gone += 1
                gone_bytes += size
            deliveries += 1
            total += size
        self._count(-deliveries, -gone, -gone_bytes)
        return total + deliveries * DELIVERY_OVERHEAD

    def add_run(self, run: MessageRun) -> None:
        """Note that one session more holds all messages of a run."""
        count = run.packets.count
        if run.holders:
            self._count(count, 0, 0)
        else:
            self._count(count, count, run.total_size)
        run.holders += 1

    def remove_run(self, run: MessageRun) -> None:
        """Note that one of the sessions that `add_run` was called for holds it no more."""
        count = run.packets.count
        run.holders -= 1
        if run.holders:
            self._count(-count, 0, 0)
        else:
            self._count(-count, -count, -run.total_size)

    def _count(self, deliveries: int, messages: int, size: int) -> None:
        self.deliveries += deliveries
        self.messages += messages
        self.bytes += size + deliveries * DELIVERY_OVERHEAD

    def remove(self, message: Message) -> None:
        """Note that one of the sessions that `add` was called for holds it no more."""
        message.holders -= 1
        self.deliveries -= 1
        self.bytes -= DELIVERY_OVERHEAD
        if not message.holders:
            self.messages -= 1
            self.bytes -= message_size(message)
