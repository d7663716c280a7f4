"""What one session is still owed: a bounded queue, first in first out (MQTT 5, section 4.6)."""

import math
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from typing import Final

from gateway.mqtt.message import Message
from gateway.mqtt.message_expiry import expires
from gateway.session.delivery import Delivery
from gateway.session.queue_account import QueueAccount
from gateway.session.queue_bounds import HEAD_BYTES, HEAD_MESSAGES, MAXIMUM_BYTES, MAXIMUM_MESSAGES
from gateway.session.queue_memory import QueueMemory
from gateway.session.rest import NO_REST, Rest
from gateway.session.waiting_run import Waiting, WaitingRun

NO_DELIVERIES: Final[deque[Waiting]] = deque(maxlen=0)
"""Stands for the deque that is made when it is needed: 760 bytes, even while it is empty."""


class DeliveryQueue(QueueAccount):
    """Deliveries in the order they were appended; those of a run may wait as one.

    A full queue refuses the newest; so does every queue while what they share is full. The caller
    counts what was refused, or makes room with `popleft`.

    In memory are the head, which is sent next, and what is not on disk yet, or never comes there;
    the rest is on disk alone until the caller, when the queue `wants_page`, has it read.
    """

    __slots__ = ("_head", "_head_bytes", "_head_messages", "_rest", "_tail")

    def __init__(
        self,
        maximum_messages: int = MAXIMUM_MESSAGES,
        maximum_bytes: int = MAXIMUM_BYTES,
        memory: QueueMemory | None = None,
    ) -> None:
        super().__init__(maximum_messages, maximum_bytes, memory)
        self._head = NO_DELIVERIES
        self._head_bytes = 0
        self._head_messages = 0
        self._rest = NO_REST
        self._tail = NO_DELIVERIES  # behind the rest

    @property
    def paged(self) -> int:
        """How many deliveries are on disk alone."""
        return self._rest.messages

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
        self._add(delivery)

    def restore_all(self, deliveries: Sequence[Delivery]) -> None:
        """Do that with each; none of them expires."""
        for delivery in deliveries:
            if self._tail or self._behind_head:
                self._to_tail(delivery)
            else:
                self._to_head(delivery)
        self._add_all(deliveries)

    def restore_rest(self, after: int, up_to: int, messages: int, size: int) -> None:
        """Take up what an earlier run left on disk; the first page may have been read already."""
        self._rest = Rest(after, up_to, messages, size)
        self._add_paged(messages, size)

    def let_go(self, batch: int) -> bool:
        """Forget what is on disk now that `batch` is, but for the head; return if all that is."""
        tail, rest, memory = self._tail, self._rest, self._memory
        while tail and self._head_has_room and not rest.messages and not rest.between:
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
            tail.popleft()
        self._memory_bytes -= memory.remove_all(gone)
        memory.page(rest.messages - messages, rest.bytes - kept)
        return not tail

    def begin_page(self) -> tuple[int, int]:
        """Return behind which place and up to which to read; `take_page` gets what was found."""
        return self._rest.begin_page()

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
        if not isinstance(delivery, WaitingRun):
            return delivery
        deliveries = delivery.open()
        self._instead_of_next(*reversed(deliveries))
        return deliveries[0]

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
            waiting, rest = waiting.split(count)
            self._instead_of_next(rest, waiting)
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
        self._head_messages -= len(taken)
        self._head_bytes -= self._remove_all(taken)
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
            self._head_messages = self._messages
            self._head_bytes = self._memory_bytes

    def _lose(self, messages: int, size: int) -> None:
        """Count so much of the rest as gone."""
        self._rest.messages -= messages
        self._rest.bytes -= size
        self._add_paged(-messages, -size)

    def _keep(self, wanted: Callable[[Waiting], bool]) -> list[Waiting]:
        """Keep what is wanted of what is in memory; return the rest."""
        removed = [delivery for delivery in self if not wanted(delivery)]
        if not removed:
            return removed
        self._head = deque(each for each in self._head if wanted(each))
        self._head_bytes = sum(each.size for each in self._head)
        self._head_messages = sum(each.count for each in self._head)
        self._tail = deque(each for each in self._tail if wanted(each))
        rest = self._rest
        if rest.between:
            rest.between = deque((place, each) for place, each in rest.between if wanted(each))
        for delivery in removed:
            self._remove(delivery)
        self._refill()
        return removed
