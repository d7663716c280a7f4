"""The undelivered messages of one session: a bounded FIFO queue (MQTT 5, section 4.6)."""

import math
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from typing import Final

from gateway.mqtt.publication import Publication
from gateway.session.queue.memory import (
    HEAD_BYTES,
    HEAD_MESSAGES,
    HELD_BACK_BYTES,
    HELD_BACK_MESSAGES,
    MAXIMUM_MEMORY,
    QueueMemory,
)
from gateway.session.queue.paged_tail import NO_TAIL, PagedTail
from gateway.session.span import SPAN_OVERHEAD, Span
from gateway.settings.broker import MAXIMUM_QUEUED_BYTES, MAXIMUM_QUEUED_MESSAGES

NO_SPANS: Final[deque[Span]] = deque(maxlen=0)
"""Shared empty deque: a real one takes 760 bytes."""


_SPAN_OVERHEAD = SPAN_OVERHEAD  # compiled, C names that no other module sees
_MAXIMUM_MEMORY = MAXIMUM_MEMORY


class DeliveryQueue:
    """Spans in the order they were appended.

    A full queue refuses the newest; so does every queue while their common memory is full. The
    caller counts what was refused, or makes capacity with `remove_oldest`.

    In memory are the head, which is sent next, and `_newest`: what is not on disk yet, or is never
    stored. The paged tail between them is only on disk until the queue `wants_page` and the caller
    has a part of it read.

    `messages` is how many wait; several may wait as one span. Bytes are counted as they occupy the
    disk, or memory if a span is not stored. All queues are added up in `memory`. A queue may hold
    no more than `memory` has free: so the longest queues are full first, and a shorter one still
    has capacity.

    In a queue that `stays` everything stays in memory, whether it is on disk or not. `written` is
    the last batch that wrote some of it.

    Messages that may not be sent now are `held_back`, in memory, until `queue_held_back`: later
    ones overtake them. They count like all others.
    """

    __slots__ = (
        "_bytes",
        "_expires",
        "_head",
        "_head_bytes",
        "_head_messages",
        "_held",
        "_held_bytes",
        "_memory",
        "_memory_bytes",
        "_newest",
        "_tail",
        "head_messages",
        "held_back",
        "maximum_bytes",
        "maximum_messages",
        "messages",
        "stays",
        "written",
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
        self._expires = math.inf  # nothing in memory expires before this monotonic second
        self._head = NO_SPANS
        self._head_bytes = 0
        self._head_messages = 0
        self.head_messages = HEAD_MESSAGES  # that stay in memory although they are on disk
        self.stays = False
        self.written = 0
        self._tail = NO_TAIL
        self._newest = NO_SPANS  # after the paged tail
        self._held = NO_SPANS  # before the head
        self._held_bytes = 0
        self.held_back = 0  # messages

    def __len__(self) -> int:
        return self.messages

    def __bool__(self) -> bool:
        """Whether anything waits."""
        return self.messages > 0

    @property
    def bytes(self) -> int:
        """The bytes of all messages.

        The last may exceed `maximum_bytes`, then the queue is full.
        """
        return self._bytes

    @property
    def full(self) -> bool:
        """True if the next message is refused, whatever its size."""
        return self.over(1)

    def over(self, more: int) -> bool:
        """Return whether `more` messages exceed a bound."""
        return self.at_bound_with(more) or self._lacks_memory or self._lacks_disk

    def at_bound_with(self, more: int) -> bool:
        """Return whether they exceed the queue's own bounds, not those of all sessions."""
        return (
            self.messages + more > self.maximum_messages
            or self._bytes >= self.maximum_bytes
            or self._memory_bytes >= MAXIMUM_MEMORY
        )

    def capacity(self, publication: Publication, first: int, most: int) -> int:
        """Return how many messages from number `first` on fit; 0 if it is full."""
        memory = self._memory
        size = publication.size(first, most) + most * _SPAN_OVERHEAD
        # usually all of them fit, and none has to be measured
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
        """True if a memory bound is reached, of this session or of all."""
        return self._memory_bytes >= MAXIMUM_MEMORY or self._lacks_memory

    @property
    def memory_bytes(self) -> int:
        """The bytes in memory, whether or not they are also on disk."""
        return self._memory_bytes

    @property
    def _lacks_memory(self) -> bool:
        """True if it holds as much memory as is free for others."""
        memory = self._memory
        return memory.bytes + self._memory_bytes >= memory.maximum_bytes

    @property
    def _lacks_disk(self) -> bool:
        """True if it holds as much of the disk as is free for others."""
        memory = self._memory
        return memory.disk_bytes + self._bytes >= memory.maximum_disk_bytes

    def _add(self, span: Span) -> None:
        """Count a new span, in memory."""
        disk_bytes = span.disk_bytes
        self.messages += span.count
        self._bytes += disk_bytes or span.size
        self._memory.disk_bytes += disk_bytes
        self._remember(span)

    def _remove(self, span: Span) -> None:
        """Stop counting a span in memory."""
        disk_bytes = span.disk_bytes
        self.messages -= span.count
        self._bytes -= disk_bytes or span.size
        self._memory.disk_bytes -= disk_bytes
        self._forget(span)

    def _uncount(self, spans: list[Span]) -> None:
        """Stop counting spans in memory."""
        messages = size = in_memory = on_disk = 0
        for span in spans:
            messages += span.count
            in_memory += span.size
            on_disk += span.disk_bytes
            size += span.disk_bytes or span.size
        self.messages -= messages
        self._bytes -= size
        self._memory_bytes -= in_memory
        self._memory.disk_bytes -= on_disk
        self._memory.release(spans)

    def _remember(self, span: Span) -> None:
        """Count the span as one in memory."""
        self._memory_bytes += span.size
        self._memory.add(span)
        publication = span.publication
        expiry = publication.properties.expiry
        if expiry is not None:
            self._expires = min(self._expires, publication.arrived + expiry)

    def _forget(self, span: Span) -> None:
        """Stop counting it in memory; it may be on disk."""
        self._memory_bytes -= span.size
        self._memory.remove(span)

    def _add_paged(self, messages: int, size: int) -> None:
        """Count messages that are only on disk; negative numbers remove them."""
        self.messages += messages
        self._bytes += size
        self._memory.disk_bytes += size
        self._memory.page(messages, size)

    @property
    def paged(self) -> int:
        """How many messages are only on disk."""
        return self._tail.messages

    @property
    def paged_bytes(self) -> int:
        """How many bytes are only on disk."""
        return self._tail.bytes

    @property
    def waits_for_page(self) -> bool:
        """True while the next message is only on disk."""
        return not self._head and self._tail.messages > 0

    @property
    def wants_page(self) -> bool:
        """True if the next page of the tail should be read now."""
        tail = self._tail
        return (
            tail.messages > 0
            and not tail.loading
            and (
                self.stays
                or (
                    self._head_messages <= self.head_messages // 2
                    and self._head_bytes <= HEAD_BYTES // 2
                )
            )
        )

    def append(self, span: Span) -> None:
        """Append the span, even beyond the bounds: the caller checked `capacity`."""
        tail = self._tail
        # behind anything that waits on disk or for it, or the order would be lost
        if self._newest or tail.messages or tail.between or not self._head_has_capacity:
            if self._newest is NO_SPANS:
                self._newest = deque()
            self._newest.append(span)
        else:
            self._to_head(span)
        self._add(span)

    def restore_tail(self, after: int, up_to: int, messages: int, size: int) -> None:
        """Restore a tail on disk; its first page may have been read already."""
        self._tail = PagedTail(after, up_to, messages, size)
        self._add_paged(messages, size)

    def forget_written(self, batch: int) -> bool:
        """Free what batches up to this one wrote, except the head.

        Return whether that is everything.
        """
        newest, tail, memory = self._newest, self._tail, self._memory
        while newest and self._head_has_capacity and not tail.messages and not tail.between:
            self._to_head(newest.popleft())
        if self.stays:
            self.written = batch
            return not newest
        # NO_TAIL is shared, and must not change
        if newest and tail is NO_TAIL:
            self._tail = tail = PagedTail()
        messages, bytes_before = tail.messages, tail.bytes
        while newest:
            span = newest[0]
            if span.row is None:
                # never stored: it stays in memory, in its place between rows on disk
                tail.add_between(span)
            elif not 0 < span.row.batch <= batch:
                break
            else:
                tail.push(span)
                self._forget(span)
                span.publication.stored_for -= 1  # its row on disk replaces it
            newest.popleft()
        memory.page(tail.messages - messages, tail.bytes - bytes_before)
        return not newest

    def begin_page(self) -> tuple[int, int]:
        """Return the numbers above which and up to which to read; `accept_page` gets the spans."""
        return self._tail.begin_page()

    def accept_page(self, spans: Sequence[Span], *, complete: bool) -> None:
        """Append a page to the head; `complete` if there was no more in the requested range."""
        tail = self._tail
        tail.loading = False
        messages, bytes_before = tail.messages, tail.bytes
        for span in spans:
            # spans that stayed in memory return to their place between the rows
            while tail.between and tail.between[0][0] < span.sequence:
                self._to_head(tail.between.popleft()[1])
            self._remember(span)
            self._to_head(span)
        tail.loaded(spans)
        self._memory.page(tail.messages - messages, tail.bytes - bytes_before)
        # not if rows were appended during the read
        if complete and tail.requested_up_to == tail.up_to:
            self._lose(tail.messages, tail.bytes)  # what could not be read
        self._refill()

    def remove_paged(self, sequence: int, size: int, messages: int) -> bool:
        """Drop messages of one row that is only on disk; False if there is no such row."""
        if not self._tail.holds(sequence):
            return False
        self._lose(messages, size)
        self._refill()
        return True

    def __iter__(self) -> Iterator[Span]:
        """Iterate over what is in memory."""
        yield from self._held
        yield from self._head
        for _, span in self._tail.between:
            yield span
        yield from self._newest

    def first(self) -> Span | None:
        """Return the next span, None if none is in memory."""
        return self._head[0] if self._head else None

    def pop(self, count: int) -> Span:
        """Remove and return up to this many messages of the next span."""
        span = self._head[0]
        if span.count > count:
            first_part, rest = span.split(count)
            self._forget(span)
            self._remember(first_part)
            self._remember(rest)
            self._head[0] = rest
            self._head_messages -= count
            self._head_bytes -= first_part.size
            self._remove(first_part)
            return first_part
        self._head.popleft()
        self._head_messages -= span.count
        self._head_bytes -= span.size
        self._remove(span)
        if not self._head:
            self._refill()
        return span

    def last(self) -> Span | None:
        """Return the last span in memory, None if none is."""
        spans = self._newest or self._head
        return spans[-1] if spans else None

    def replace(self, span: Span, other: Span) -> None:
        """Put a span in the place of another one, which is in memory and becomes it."""
        in_head = span not in self._newest
        before = span.size
        self._remove(span)
        span.become(other)
        self._add(span)
        if in_head:
            self._head_bytes += span.size - before

    def remove_only(self, span: Span) -> None:
        """Remove a span that is in memory, wherever it is."""
        self._remove_unwanted(lambda each: each is not span)

    def separate(self) -> None:
        """Let each message in memory be a span of its own."""
        spans = [*self._head, *self._newest]
        self._uncount(spans)
        self._head, self._newest = NO_SPANS, NO_SPANS
        self._head_messages = self._head_bytes = 0
        for span in spans:
            while span.count > 1:
                first, span = span.split(1)  # noqa: PLW2901 - the rest of it
                self.append(first)
            self.append(span)

    def hold_back(self, count: int) -> bool:
        """Set the first messages of the next span aside; False if the limit is reached."""
        if (
            self.held_back >= HELD_BACK_MESSAGES
            or self._held_bytes >= HELD_BACK_BYTES
            or self._memory.heads_full
        ):
            return False
        span = self.pop(count)
        self._add(span)
        if self._held is NO_SPANS:
            self._held = deque()
        self._held.append(span)
        self._count_held(span.count, span.size)
        return True

    def queue_held_back(self) -> None:
        """Put the messages that were held back to the front, in their order."""
        if not self.held_back:
            return
        self._head_messages += self.held_back
        self._head_bytes += self._held_bytes
        self._held.extend(self._head)
        self._head, self._held = self._held, NO_SPANS
        self._count_held(-self.held_back, -self._held_bytes)

    def remove_oldest(self) -> Span:
        """Remove and return the oldest message in memory."""
        if not self.held_back:
            return self.pop(1)
        span = self._held.popleft()
        self._remove(span)
        self._count_held(-span.count, -span.size)
        if span.count > 1:
            span, rest = span.split(1)
            self._add(rest)
            self._held.appendleft(rest)
            self._count_held(rest.count, rest.size)
        return span

    def _count_held(self, messages: int, size: int) -> None:
        """Count messages as held back; negative numbers remove them."""
        self.held_back += messages
        self._held_bytes += size
        self._memory.held_back += messages

    def clear(self) -> None:
        """Remove everything: the session has ended."""
        self._remove_unwanted(lambda _: False)
        if self._tail is not NO_TAIL:
            self._lose(self._tail.messages, self._tail.bytes)
            self._tail = PagedTail()

    def remove_expired(self, now: float) -> list[Span]:
        """Remove and return what has expired in memory at `now` (monotonic s) [MQTT-3.3.2-5].

        Takes time in proportion to the queue's memory, and none before the first message expires.
        """
        # most sweeps find nothing, and a queue may have 100,000 messages
        if now < self._expires:
            return []
        removed = self._remove_unwanted(lambda span: not span.publication.expired(now))
        self._expires = min(
            (
                each.publication.arrived + each.publication.properties.expiry
                for each in self
                if each.publication.properties.expiry is not None
            ),
            default=math.inf,
        )
        return removed

    def cut(self, size: int, *, newest: bool, on_disk: bool) -> list[Span]:
        """Remove and return this many bytes from one end of what is in memory.

        Either of messages that are also `on_disk`, or of those that are only in memory.
        """
        cut: dict[int, Span] = {}
        spans = [span for span in self if (span.disk_bytes > 0) is on_disk]
        for span in reversed(spans) if newest else spans:
            if size <= 0:
                break
            cut[id(span)] = span
            size -= span.disk_bytes or span.size
        return self._remove_unwanted(lambda span: id(span) not in cut)

    def remove_qos_0(self) -> int:
        """Remove QoS 0 messages, which wait for no other connection; return how many."""
        before = self.messages
        self._remove_unwanted(lambda span: span.qos > 0)
        return before - self.messages

    @property
    def _head_has_capacity(self) -> bool:
        return (
            not self._head  # the next span is always in memory, or about to be read
            or (
                self._head_messages < self.head_messages
                and self._head_bytes < HEAD_BYTES
                and not self._memory.heads_full
            )
            or self.stays
        )

    def _to_head(self, span: Span) -> None:
        if self._head is NO_SPANS:
            self._head = deque()
        self._head.append(span)
        self._head_messages += span.count
        self._head_bytes += span.size

    def _refill(self) -> None:
        """Append the newest to the head if nothing on disk precedes them."""
        tail = self._tail
        if tail.messages:
            return
        while tail.between:
            self._to_head(tail.between.popleft()[1])
        # a read in progress still refers to it
        if not tail.loading:
            self._tail = NO_TAIL
        if not self._head:
            self._head, self._newest = self._newest or NO_SPANS, NO_SPANS
            # then everything in memory is in the head
            self._head_messages = self.messages - self.held_back
            self._head_bytes = self._memory_bytes - self._held_bytes

    def _lose(self, messages: int, size: int) -> None:
        """Stop counting a part of the tail."""
        self._tail.messages -= messages
        self._tail.bytes -= size
        self._add_paged(-messages, -size)

    def _remove_unwanted(self, wanted: Callable[[Span], bool]) -> list[Span]:
        """Remove what is not wanted from memory, and return it."""
        removed: list[Span] = []

        def stays(span: Span) -> bool:
            if wanted(span):
                return True
            removed.append(span)
            return False

        held = deque(span for span in self._held if stays(span))
        head = deque(span for span in self._head if stays(span))
        tail = self._tail
        between = deque((number, span) for number, span in tail.between if stays(span))
        newest = deque(span for span in self._newest if stays(span))
        if not removed:
            return removed
        self._head, self._newest = head, newest
        if self.held_back:
            self._held = held
            messages, size = sum([each.count for each in held]), sum([each.size for each in held])
            self._count_held(messages - self.held_back, size - self._held_bytes)
        # an empty one may be that of NO_TAIL, which is shared
        if tail.between:
            tail.between = between
        self._head_bytes = sum([span.size for span in head])
        self._head_messages = sum([span.count for span in head])
        self._uncount(removed)
        self._refill()
        return removed
