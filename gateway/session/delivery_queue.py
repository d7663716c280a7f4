"""What one session is still owed: a bounded queue, first in first out (MQTT 5, section 4.6)."""

import math
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from typing import Final

from gateway.mqtt.message import Message
from gateway.mqtt.message_expiry import expires
from gateway.session.delivery import Delivery
from gateway.session.queue_bounds import (
    HEAD_BYTES,
    HEAD_MESSAGES,
    MAXIMUM_BYTES,
    MAXIMUM_MEMORY,
    MAXIMUM_MESSAGES,
    MOST_OF_RUN,
)
from gateway.session.queue_memory import QueueMemory
from gateway.session.rest import NO_REST, Rest
from gateway.session.waiting_run import Waiting, WaitingRun

NO_DELIVERIES: Final[deque[Waiting]] = deque(maxlen=0)
"""Stands for the deque that is made when it is needed: 760 bytes, even while it is empty."""


class DeliveryQueue:
    """Deliveries in the order they were appended, within bounds of number and bytes.

    Those of a run may wait as one; the number is that of messages.

    A full queue refuses the newest; so does every queue while what they share is full. The caller
    counts what was refused, or makes room with `popleft`.

    Bytes count as what they take of the disk, or of memory where a delivery is not written.
    In memory are the head, which is sent next, and what is not on disk yet, or never comes there;
    the rest is on disk alone, and comes back with `take_page`, which the caller asks for when the
    queue `wants_page`.
    """

    __slots__ = (
        "_bytes",
        "_expires",
        "_head",
        "_head_bytes",
        "_head_messages",
        "_memory",
        "_memory_bytes",
        "_rest",
        "_tail",
        "_tail_messages",
        "maximum_bytes",
        "maximum_messages",
    )

    def __init__(
        self,
        maximum_messages: int = MAXIMUM_MESSAGES,
        maximum_bytes: int = MAXIMUM_BYTES,
        memory: QueueMemory | None = None,
    ) -> None:
        self.maximum_messages = maximum_messages
        self.maximum_bytes = maximum_bytes
        self._memory = memory or QueueMemory()
        self._head = NO_DELIVERIES
        self._head_bytes = 0
        self._head_messages = 0
        self._rest = NO_REST
        self._tail = NO_DELIVERIES  # behind the rest
        self._tail_messages = 0
        self._bytes = 0
        self._memory_bytes = 0
        self._expires = math.inf  # the monotonic second before which nothing in memory expires

    def __len__(self) -> int:
        rest = self._rest
        return self._head_messages + rest.messages + len(rest.between) + self._tail_messages

    def __bool__(self) -> bool:
        """Whether anything waits; asked far more often than how much."""
        if self._head or self._tail:
            return True
        rest = self._rest
        return rest is not NO_REST and bool(rest.messages or rest.between)

    @property
    def bytes(self) -> int:
        """The bytes of what waits; the last delivery may exceed `maximum_bytes`, then none."""
        return self._bytes

    @property
    def paged(self) -> int:
        """How many deliveries are on disk alone."""
        return self._rest.messages

    @property
    def full(self) -> bool:
        """True if the next `append` is refused, whatever its size."""
        return self.over(1)

    def over(self, more: int) -> bool:
        """Tell whether there is no room for `more` deliveries."""
        return self.at_bound_with(more) or self._memory.full or self._memory.disk_full

    def at_bound_with(self, more: int) -> bool:
        """Tell whether there is none by itself, and not for what other sessions hold."""
        return (
            len(self) + more > self.maximum_messages
            or self._bytes >= self.maximum_bytes
            or self._memory_bytes >= MAXIMUM_MEMORY
        )

    @property
    def room_for_run(self) -> int:
        """How many deliveries there surely is room for if none is above LARGEST_OF_RUN."""
        memory = self._memory
        left = min(
            self.maximum_bytes - self._bytes,
            MAXIMUM_MEMORY - self._memory_bytes,
            memory.maximum_bytes - memory.bytes,
            memory.maximum_disk_bytes - memory.disk_bytes,
        )
        return min(self.maximum_messages - len(self), left // MOST_OF_RUN)

    @property
    def memory_full(self) -> bool:
        """True if it is memory that has no room for more, of this session or of all."""
        return self._memory_bytes >= MAXIMUM_MEMORY or self._memory.full

    @property
    def waits_for_page(self) -> bool:
        """True while what comes next is on disk alone."""
        return not self._head and self._rest.messages > 0

    @property
    def wants_page(self) -> bool:
        """True if a part of the rest should be read now."""
        rest = self._rest
        return (
            rest.messages > 0
            and not rest.loading
            and self._head_messages <= HEAD_MESSAGES // 2
            and self._head_bytes <= HEAD_BYTES // 2
        )

    def append(self, delivery: Delivery) -> bool:
        """Queue the delivery; return False, and leave it out, if the queue is full."""
        if self.full:
            return False
        self.restore(delivery)
        return True

    def restore(self, delivery: Waiting) -> None:
        """Queue the delivery, or all of a run, also beyond the bounds: it is promised."""
        if self._behind_head:
            self._to_tail(delivery)
        else:
            self._to_head(delivery)
        self._bytes += delivery.kept or delivery.size
        self._memory.keep(delivery.kept)
        self._remember(delivery)

    def restore_all(self, deliveries: Sequence[Delivery]) -> None:
        """Do that with each; none of them expires."""
        for delivery in deliveries:
            if self._tail or self._behind_head:
                self._to_tail(delivery)
            else:
                self._to_head(delivery)
        self._memory_bytes += self._memory.add_all(each.message for each in deliveries)
        self._bytes += sum(each.kept or each.size for each in deliveries)
        self._memory.keep(sum(each.kept for each in deliveries))

    def restore_rest(self, after: int, up_to: int, messages: int, size: int) -> None:
        """Take up what an earlier run left on disk; the first page may have been read already."""
        self._rest = Rest(after, up_to, messages, size)
        self._bytes += size
        self._memory.keep(size)
        self._memory.page(messages, size)

    def let_go(self, batch: int) -> bool:
        """Forget what is on disk now that `batch` is, but for the head; return if all that is."""
        tail, rest, memory = self._tail, self._rest, self._memory
        while tail and self._head_has_room and not rest.messages and not rest.between:
            self._tail_messages -= tail[0].count
            self._to_head(tail.popleft())
        if tail and rest is NO_REST:
            self._rest = rest = Rest()
        messages, kept = rest.messages, rest.bytes
        gone: list[Message] = []
        while tail:
            delivery = tail[0]
            if isinstance(delivery, Delivery) and not delivery.kept:
                rest.keep_between(delivery)
            elif not 0 < delivery.batch <= batch:
                break
            else:
                rest.push(delivery)
                if isinstance(delivery, WaitingRun):
                    self._forget(delivery)
                    delivery.run.owed -= 1  # the row knows
                else:
                    gone.append(delivery.message)
                    delivery.message.owed -= 1
            self._tail_messages -= delivery.count
            tail.popleft()
        self._memory_bytes -= memory.remove_all(gone)
        memory.page(rest.messages - messages, rest.bytes - kept)
        return not tail

    def begin_page(self) -> tuple[int, int]:
        """Return behind which place and up to which to read; `take_page` gets what was found."""
        rest = self._rest
        rest.loading = True
        rest.asked_up_to = rest.up_to
        return rest.after, rest.up_to

    def take_page(self, deliveries: Sequence[Waiting], *, complete: bool) -> None:
        """Take over the first of the rest; `complete` if there is no more of what was asked for."""
        rest = self._rest
        rest.loading = False
        messages, kept = rest.messages, rest.bytes
        for delivery in deliveries:
            while rest.between and rest.between[0][0] < delivery.place:
                self._to_head(rest.between.popleft()[1])
            rest.loaded(delivery)
            self._remember(delivery)
            self._to_head(delivery)
        self._memory.page(rest.messages - messages, rest.bytes - kept)
        if complete and rest.asked_up_to == rest.up_to:
            self._lose(rest.messages, rest.bytes)  # what could not be read
        self._refill()

    def remove_paged(self, place: int, size: int) -> bool:
        """Give up a delivery that is on disk alone; False if there is none of that place."""
        if not self._rest.holds(place):
            return False
        self._lose(1, size)
        self._refill()
        return True

    def __iter__(self) -> Iterator[Waiting]:
        """Iterate over what is in memory."""
        yield from self._head
        for _, delivery in self._rest.between:
            yield delivery
        yield from self._tail

    def first(self) -> Delivery:
        """Return the delivery that is next; raises IndexError if none is in memory."""
        delivery = self._head[0]
        return self._open_next(delivery) if isinstance(delivery, WaitingRun) else delivery

    def popleft(self) -> Delivery:
        """Remove and return the delivery that is next; raises IndexError if none is in memory."""
        self._from_head(delivery := self.first())
        return delivery

    @property
    def next_run(self) -> WaitingRun | None:
        """The run that is next, None if that is a delivery, or on disk alone."""
        delivery = self._head[0] if self._head else None
        return delivery if isinstance(delivery, WaitingRun) else None

    def take_run(self, waiting: WaitingRun, count: int) -> WaitingRun:
        """Remove and return `next_run`, which this is, or so many messages if it has more."""
        if waiting.count > count:
            first, rest = waiting.split(count)
            self._instead_of_next(rest, first)
            waiting = first
        self._from_head(waiting)
        return waiting

    @property
    def head(self) -> Iterator[Waiting]:
        """What is next and in memory; behind it may be more."""
        return iter(self._head)

    def take(self, taken: Sequence[Delivery]) -> None:
        """Remove the first of `head`, which are these."""
        for _ in taken:
            self._head.popleft()
        size = self._memory.remove_all(each.message for each in taken)
        self._head_messages -= len(taken)
        self._head_bytes -= size
        self._memory_bytes -= size
        self._bytes -= sum(each.kept or each.size for each in taken)
        self._memory.keep(-sum(each.kept for each in taken))
        if not self._head:
            self._refill()

    def clear(self) -> None:
        """Remove everything: the session has ended."""
        self._keep(lambda _: False)
        if self._rest is not NO_REST:
            self._lose(self._rest.messages, self._rest.bytes)
            self._rest = Rest()

    def remove_expired(self, now: float) -> list[Delivery]:
        """Remove and return what has expired in memory at `now` (monotonic s) [MQTT-3.3.2-5].

        Costs the length of what is in memory, and nothing before the first of it expires.
        """
        if now < self._expires:
            return []
        removed = self._keep(lambda delivery: not delivery.expired(now))
        left = [each for each in self if isinstance(each, Delivery)]
        self._expires = min((expires(each.message) for each in left), default=math.inf)
        return [each for each in removed if isinstance(each, Delivery)]

    def remove_qos_0(self) -> int:
        """Remove what needs no acknowledgement, and so no session to wait in; return how many."""
        return len(self._keep(lambda delivery: delivery.qos > 0))

    @property
    def _behind_head(self) -> bool:
        """Whether what comes now stands behind more than the head."""
        rest = self._rest
        return bool(self._tail or rest.messages or rest.between) or not self._head_has_room

    @property
    def _head_has_room(self) -> bool:
        return not self._head or (  # what is next is in memory, or to be read
            self._head_messages < HEAD_MESSAGES
            and self._head_bytes < HEAD_BYTES
            and not self._memory.heads_full
        )

    def _to_head(self, delivery: Waiting) -> None:
        if self._head is NO_DELIVERIES:
            self._head = deque()
        self._head.append(delivery)
        self._head_messages += delivery.count
        self._head_bytes += delivery.size

    def _from_head(self, delivery: Waiting) -> None:
        self._head.popleft()
        self._head_messages -= delivery.count
        self._head_bytes -= delivery.size
        self._remove(delivery)
        if not self._head:
            self._refill()

    def _open_next(self, waiting: WaitingRun) -> Delivery:
        """Go on with single deliveries instead of `next_run`, which this is; return the first."""
        deliveries = waiting.open()
        self._instead_of_next(*reversed(deliveries))
        return deliveries[0]

    def _instead_of_next(self, *parts: Waiting) -> None:
        """Put the parts of the run that is next, the last first, where it stands."""
        self._forget(self._head.popleft())
        for part in parts:
            self._head.appendleft(part)
            self._remember(part)

    def _to_tail(self, delivery: Waiting) -> None:
        if self._tail is NO_DELIVERIES:
            self._tail = deque()
        self._tail.append(delivery)
        self._tail_messages += delivery.count

    def _refill(self) -> None:
        """Let the tail follow once nothing on disk stands before it."""
        rest = self._rest
        if rest.messages:
            return
        while rest.between:
            self._to_head(rest.between.popleft()[1])
        if not rest.loading:
            self._rest = NO_REST
        if not self._head:
            self._head, self._tail = self._tail or NO_DELIVERIES, NO_DELIVERIES
            self._head_messages, self._tail_messages = self._tail_messages, 0
            self._head_bytes = self._memory_bytes

    def _remember(self, delivery: Waiting) -> None:
        """Count the delivery as one in memory."""
        self._memory_bytes += delivery.size
        if isinstance(delivery, WaitingRun):
            self._memory.add_run(delivery.run)
            return
        self._memory.add(delivery.message)
        if delivery.message.message_expiry is not None:
            self._expires = min(self._expires, expires(delivery.message))

    def _forget(self, delivery: Waiting) -> None:
        self._memory_bytes -= delivery.size
        if isinstance(delivery, WaitingRun):
            self._memory.remove_run(delivery.run)
        else:
            self._memory.remove(delivery.message)

    def _remove(self, delivery: Waiting) -> None:
        self._bytes -= delivery.kept or delivery.size
        self._memory.keep(-delivery.kept)
        self._forget(delivery)

    def _lose(self, messages: int, size: int) -> None:
        """Count so much of the rest as gone."""
        self._rest.messages -= messages
        self._rest.bytes -= size
        self._bytes -= size
        self._memory.keep(-size)
        self._memory.page(-messages, -size)

    def _keep(self, wanted: Callable[[Waiting], bool]) -> list[Waiting]:
        """Keep what is wanted of what is in memory; return the rest."""
        removed = [delivery for delivery in self if not wanted(delivery)]
        if not removed:
            return removed
        self._head = deque(each for each in self._head if wanted(each))
        self._head_bytes = sum(each.size for each in self._head)
        self._head_messages = sum(each.count for each in self._head)
        self._tail = deque(each for each in self._tail if wanted(each))
        self._tail_messages = sum(each.count for each in self._tail)
        rest = self._rest
        if rest.between:
            rest.between = deque((place, each) for place, each in rest.between if wanted(each))
        for delivery in removed:
            self._remove(delivery)
        self._refill()
        return removed
