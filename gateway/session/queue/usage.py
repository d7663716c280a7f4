"""What waits for one session, counted against its bounds."""

import math

from gateway.mqtt.publication import Publication
from gateway.session.queue.bounds import MAXIMUM_MEMORY
from gateway.session.queue.memory import QueueMemory
from gateway.session.span import SPAN_OVERHEAD, Span
from gateway.settings.broker import MAXIMUM_QUEUED_BYTES, MAXIMUM_QUEUED_MESSAGES

_SPAN_OVERHEAD = SPAN_OVERHEAD  # compiled, C names that no other module sees
_MAXIMUM_MEMORY = MAXIMUM_MEMORY


class QueueUsage:
    """The number and the bytes of what a queue holds, in all and in memory.

    The number is that of messages, several of which may wait as one span. Bytes count as what they
    take of the disk, or of memory where a span is not written. What all sessions share is told
    to their `memory`. Of that a queue may have no more than it leaves free: the longest queues
    are full first, and a shorter one still has room.

    `DeliveryQueue` is one and has none: an object more would cost each session as much again, and
    each message a call.
    """

    __slots__ = (
        "_bytes",
        "_expires",
        "_memory",
        "_memory_bytes",
        "maximum_bytes",
        "maximum_messages",
        "messages",
    )

    def __init__(
        self,
        maximum_messages: int = MAXIMUM_QUEUED_MESSAGES,
        maximum_bytes: int = MAXIMUM_QUEUED_BYTES,
        memory: QueueMemory | None = None,
    ) -> None:
        self.maximum_messages = maximum_messages
        self.maximum_bytes = maximum_bytes
        self._memory = memory or QueueMemory()
        self.messages = 0
        self._bytes = 0
        self._memory_bytes = 0
        self._expires = math.inf  # the monotonic second before which nothing in memory expires

    def __len__(self) -> int:
        return self.messages

    def __bool__(self) -> bool:
        """Whether anything waits."""
        return self.messages > 0

    @property
    def bytes(self) -> int:
        """The bytes of what waits; the last message may exceed `maximum_bytes`, then none."""
        return self._bytes

    @property
    def full(self) -> bool:
        """True if the next message is refused, whatever its size."""
        return self.over(1)

    def over(self, more: int) -> bool:
        """Tell whether there is no room for `more` messages."""
        return self.at_bound_with(more) or self._lacks_memory or self._lacks_disk

    def at_bound_with(self, more: int) -> bool:
        """Tell whether there is none by itself, and not for what other sessions hold."""
        return (
            self.messages + more > self.maximum_messages
            or self._bytes >= self.maximum_bytes
            or self._memory_bytes >= MAXIMUM_MEMORY
        )

    def room(self, publication: Publication, first: int, most: int) -> int:
        """Return for how many messages from number `first` on there is room; 0 if it is full."""
        memory = self._memory
        size = publication.size(first, most) + most * _SPAN_OVERHEAD
        if (
            self.messages + most <= self.maximum_messages
            and self._bytes + size < self.maximum_bytes
            and self._memory_bytes + size < _MAXIMUM_MEMORY
            and memory.bytes + self._memory_bytes + size < memory.maximum_bytes
            and memory.disk_bytes + self._bytes + size < memory.maximum_disk_bytes
        ):
            return most
        most = min(most, self.maximum_messages - self.messages)
        left = min(
            self.maximum_bytes - self._bytes,
            _MAXIMUM_MEMORY - self._memory_bytes,
            memory.maximum_bytes - memory.bytes - self._memory_bytes,
            memory.maximum_disk_bytes - memory.disk_bytes - self._bytes,
        )
        fitting = 0
        while fitting < most and left > 0:
            left -= publication.size(first + fitting, 1) + _SPAN_OVERHEAD
            fitting += 1
        return fitting

    @property
    def memory_full(self) -> bool:
        """True if it is memory that has no room for more, of this session or of all."""
        return self._memory_bytes >= MAXIMUM_MEMORY or self._lacks_memory

    @property
    def memory_bytes(self) -> int:
        """The bytes of what waits in memory, whether or not it is on disk, too."""
        return self._memory_bytes

    @property
    def _lacks_memory(self) -> bool:
        """True if it holds as much memory as is left for others."""
        memory = self._memory
        return memory.bytes + self._memory_bytes >= memory.maximum_bytes

    @property
    def _lacks_disk(self) -> bool:
        """True if it holds as much of the disk as is left for others."""
        memory = self._memory
        return memory.disk_bytes + self._bytes >= memory.maximum_disk_bytes

    def _add(self, span: Span) -> None:
        """Count a span that waits from now on, in memory."""
        kept = span.kept
        self.messages += span.count
        self._bytes += kept or span.size
        self._memory.disk_bytes += kept
        self._remember(span)

    def _remove(self, span: Span) -> None:
        """Count a span that waited in memory, and does not any more."""
        kept = span.kept
        self.messages -= span.count
        self._bytes -= kept or span.size
        self._memory.disk_bytes -= kept
        self._forget(span)

    def _give_up(self, spans: list[Span]) -> None:
        """Count spans that waited in memory, and do not any more."""
        messages = size = in_memory = on_disk = 0
        for span in spans:
            messages += span.count
            in_memory += span.size
            on_disk += span.kept
            size += span.kept or span.size
        self.messages -= messages
        self._bytes -= size
        self._memory_bytes -= in_memory
        self._memory.disk_bytes -= on_disk
        self._memory.give_up(spans)

    def _remember(self, span: Span) -> None:
        """Count the span as one in memory."""
        self._memory_bytes += span.size
        self._memory.add(span)
        publication = span.publication
        expiry = publication.properties.expiry
        if expiry is not None:
            self._expires = min(self._expires, publication.arrived + expiry)

    def _forget(self, span: Span) -> None:
        """Count it as none in memory, wherever else it is."""
        self._memory_bytes -= span.size
        self._memory.remove(span)

    def _add_paged(self, messages: int, size: int) -> None:
        """Count what waits on disk alone; below 0, what does so no more."""
        self.messages += messages
        self._bytes += size
        self._memory.disk_bytes += size
        self._memory.page(messages, size)
