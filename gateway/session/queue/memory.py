"""Bounds of one session's queue, and of all queues together, in bytes."""

from collections import deque
from collections.abc import Callable, Iterable

from gateway.session.span import SPAN_OVERHEAD, Span
from gateway.settings.broker import MAXIMUM_QUEUED_BYTES_TOTAL

MAXIMUM_MEMORY = 64 * 1024 * 1024
"""Bytes of one session's queue in memory: only there, or not yet on disk."""

HEAD_MESSAGES = 1_000
"""Deliveries of one session that stay in memory although they are on disk: those sent next.

The last span of them may exceed it.
"""

HEAD_BYTES = 1024 * 1024
"""Bytes of the same; the last may exceed it."""

HELD_BACK_MESSAGES = 10_000
"""Messages of one session that are held back in memory, because its connection may not read them
now. Beyond that the next one, and all after it, wait."""

HELD_BACK_BYTES = 4 * 1024 * 1024
"""Bytes of the same; the last may exceed it."""


MAXIMUM_BYTES_TOTAL = 128 * 1024 * 1024
"""Bytes of all sessions: a quarter of the smallest board's memory."""

MAXIMUM_HEAD_BYTES = 32 * 1024 * 1024
"""Bytes in memory above which a queue keeps only its next span of what is on disk."""

MAXIMUM_NAMED = 1_000
"""Clients with lost messages whose names are recorded; others are only counted."""

AT_ONCE = 2_000
"""Dropped spans that are freed in one turn: some 2 ms."""


class QueueMemory:
    """Counts messages in queues, each once however many sessions share it, and their spans.

    A publication counts whole while any of its messages is held: its packets are one object.

    Wills and the packet identifiers of QoS 2 messages count too. When it is full, no session
    accepts more of any; those held stay. The caller that is refused counts the refusal.

    `disk_bytes` is what queues have on disk, counted by them. Of that `paged` deliveries,
    `paged_bytes`, are not in memory.

    Spans that queues drop by the thousand count until `forget_some` has freed them. `on_given_up`
    is called then, and `forget_some` must be called until nothing is left.

    `dropped` has the number of lost acknowledged messages by client, since somebody emptied it.
    """

    __slots__ = (
        "_released",
        "bytes",
        "deliveries",
        "disk_bytes",
        "dropped",
        "held_back",
        "maximum_bytes",
        "maximum_disk_bytes",
        "messages",
        "on_released",
        "paged",
        "paged_bytes",
    )

    def __init__(
        self,
        maximum_bytes: int = MAXIMUM_BYTES_TOTAL,
        maximum_disk_bytes: int = MAXIMUM_QUEUED_BYTES_TOTAL,
    ) -> None:
        self.maximum_bytes = maximum_bytes
        self.maximum_disk_bytes = maximum_disk_bytes
        self.bytes = 0
        self.messages = 0  # different ones
        self.deliveries = 0
        self.disk_bytes = 0
        self.held_back = 0  # messages that a connection may not read now
        self.paged = 0
        self.paged_bytes = 0
        self.dropped: dict[str, int] = {}  # messages, by client identifier
        self._released: deque[Span] = deque()
        self.on_released: Callable[[], None] = lambda: None

    @property
    def full(self) -> bool:
        """True while nothing more may be held; the last message may have exceeded the bound."""
        return self.bytes >= self.maximum_bytes

    @property
    def heads_full(self) -> bool:
        """True while memory is too scarce for copies of what is on disk."""
        return self.bytes >= MAXIMUM_HEAD_BYTES

    def note_dropped(self, client_id: str, count: int) -> None:
        """Note that a client has lost this many acknowledged messages."""
        if client_id in self.dropped or len(self.dropped) < MAXIMUM_NAMED:
            self.dropped[client_id] = self.dropped.get(client_id, 0) + count

    def page(self, deliveries: int, size: int) -> None:
        """Count deliveries that are only on disk; negative numbers remove them."""
        self.paged += deliveries
        self.paged_bytes += size

    def charge(self, size: int) -> None:
        """Count bytes that a session holds beside messages; negative numbers remove them."""
        self.bytes += size

    def add(self, span: Span) -> None:
        """Count a span that a queue holds."""
        publication = span.publication
        if not publication.holders:
            self.messages += publication.count
            self.bytes += publication.size(0, publication.count)
        publication.holders += 1
        self.deliveries += span.count
        self.bytes += span.count * SPAN_OVERHEAD

    def remove(self, span: Span) -> None:
        """Stop counting a span that was counted by `add`."""
        publication = span.publication
        publication.holders -= 1
        self.deliveries -= span.count
        self.bytes -= span.count * SPAN_OVERHEAD
        if not publication.holders:
            self.messages -= publication.count
            self.bytes -= publication.size(0, publication.count)

    def release(self, spans: Iterable[Span]) -> None:
        """Note that a queue holds these spans no more; beyond AT_ONCE they still count a while."""
        self._released.extend(spans)
        if self.forget_some(AT_ONCE):
            self.on_released()

    def forget_some(self, most: int) -> bool:
        """Stop counting this many dropped spans; return whether more remain."""
        given_up = self._released
        for _ in range(min(most, len(given_up))):
            self.remove(given_up.popleft())
        return bool(given_up)
