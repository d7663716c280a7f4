"""What waits for the consumers of a channel, in the order in which they get it."""

import heapq
from collections import deque
from collections.abc import Callable, Collection, Iterator
from itertools import chain
from math import inf

from gateway.broker.channels.last_values import LastValues
from gateway.mqtt.topics import topic_matches
from gateway.session.queue.delivery_queue import DeliveryQueue
from gateway.session.queue.memory import HEAD_BYTES
from gateway.session.restored import RestoredSession
from gateway.session.session import Session
from gateway.session.span import Span


class EarlierRun:
    """The attempts of a channel's messages in an earlier run, as far as noted on disk.

    Its last second was not noted: each of its messages may have been dispatched once more.
    """

    __slots__ = ("_attempts", "_last", "counted")

    def __init__(self, stored: RestoredSession | None = None) -> None:
        spans = [] if stored is None else stored.spans
        self._attempts = {} if stored is None else dict(stored.attempts)  # by sequence number
        self.counted = len(self._attempts) > 0  # some of its messages have attempts
        self._last = spans[-1].span.last if spans else 0  # its last message that was in memory

    def attempts(self, span: Span) -> int:
        """Return how often the first message of a span was dispatched."""
        return self._attempts.get(span.sequence, 0) if self.counted else 0

    def may_be_dispatched(self, span: Span) -> bool:
        """Return whether these messages may have been dispatched without a note."""
        return 0 < span.sequence <= self._last


class Offer:
    """Messages with the same number of attempts; `avoid` gets them only if no other can.

    They are too large for consumers whose Maximum Packet Size is `above` bytes or less.
    """

    __slots__ = ("above", "attempts", "avoid", "span")

    def __init__(self, span: Span, attempts: int, avoid: Session | None, above: int = 0) -> None:
        self.span = span
        self.attempts = attempts
        self.avoid = avoid
        self.above = above

    def is_of(self, span: Span) -> bool:
        """Return whether it is the same message as that of a span."""
        own = self.span
        return own.publication is span.publication and own.first == span.first


class ReturnedMessages:
    """Messages that are next, that return later, and that are set aside.

    A message is set aside if its topic is paused or no consumer may read it now. Up to
    `maximum_held` messages, or 1 MiB, are; beyond that, those behind them wait.
    """

    __slots__ = ("_held", "_held_bytes", "_later", "_next", "_order", "maximum_held")

    def __init__(self, maximum_held: int) -> None:
        self.maximum_held = maximum_held
        self._next: deque[Offer] = deque()
        self._held: deque[Offer] = deque()
        self._held_bytes = 0
        self._later: list[tuple[float, int, Offer]] = []  # a heap, by second
        self._order = 0  # keeps the order within one second

    def __len__(self) -> int:
        return len(self._next) + len(self._held) + len(self._later)

    def __iter__(self) -> Iterator[Offer]:
        return chain(self._held, self._next, (each for _, _, each in self._later))

    def first(self) -> Offer | None:
        """Return the next one, None if there is none."""
        return self._next[0] if self._next else None

    def pop(self) -> Offer:
        """Remove and return the next one."""
        return self._next.popleft()

    def remove(self, span: Span) -> bool:
        """Remove the one message of a span; return whether it was there."""
        found = next((each for each in self if each.is_of(span)), None)
        if found is None:
            return False
        if found in self._held:
            self._held.remove(found)
            self._held_bytes -= found.span.size
        elif found in self._next:
            self._next.remove(found)
        else:
            self._later = [each for each in self._later if each[2] is not found]
            heapq.heapify(self._later)
        return True

    def put(self, offer: Offer, second: float = 0.0) -> None:
        """Add a message, which waits until the monotonic `second`."""
        if second:
            self._order += 1
            heapq.heappush(self._later, (second, self._order, offer))
        else:
            self._next.append(offer)

    def come_back(self, now: float) -> float:
        """Make those next whose second has come; return the second of the one after them."""
        while self._later and self._later[0][0] <= now:
            self._next.append(heapq.heappop(self._later)[2])
        return self._later[0][0] if self._later else inf

    @property
    def held_messages(self) -> int:
        """How many messages are set aside."""
        return len(self._held)

    @property
    def holds_more(self) -> bool:
        """Whether another message may be set aside."""
        return len(self._held) < self.maximum_held and self._held_bytes < HEAD_BYTES

    def hold(self, offer: Offer) -> None:
        """Set a message aside until `resume`."""
        self._held.append(offer)
        self._held_bytes += offer.span.size

    def resume(self, is_paused: Callable[[Span], bool]) -> None:
        """Make those next, before all others, whose topic is no longer paused."""
        held, self._held, self._held_bytes = self._held, deque(), 0
        resumed: list[Offer] = []
        for each in held:
            if is_paused(each.span):
                self.hold(each)
            else:
                resumed.append(each)
        self._next.extendleft(reversed(resumed))

    def clear(self) -> None:
        """Forget all of them."""
        self._next.clear()
        self._held.clear()
        self._held_bytes = 0
        self._later.clear()


class Waiting:
    """Returned messages, followed by those of the channel's queue.

    Nothing is next while the channel is `paused`. Messages of topics that match `paused_filters`
    are set aside.
    """

    __slots__ = ("earlier", "last_values", "paused", "paused_filters", "queue", "returned")

    def __init__(self, queue: DeliveryQueue, maximum_held: int) -> None:
        self.queue = queue
        self.returned = ReturnedMessages(maximum_held)
        self.earlier = EarlierRun()
        self.last_values: LastValues | None = None
        self.paused = False
        self.paused_filters: Collection[str] = ()

    def __len__(self) -> int:
        return self.queue.messages + len(self.returned)

    def passes(self) -> bool:
        """Return whether a new message would be next, whatever its topic."""
        return not (self.queue.messages or self.paused or self.paused_filters or len(self.returned))

    @property
    def has_next(self) -> bool:
        """Whether a message is next, or is being read from disk."""
        return not self.paused and (self.queue.messages > 0 or self.returned.first() is not None)

    def spans(self) -> list[Span]:
        """Return all that is in memory."""
        return [*(each.span for each in self.returned), *self.queue]

    def first(self, now: float) -> Offer | None:
        """Return what is next, None if nothing is; set aside what is paused."""
        if self.paused:
            return None
        while True:
            offer = self.returned.first()
            if offer is None:
                span = self.queue.first()
                if span is None:
                    return None
                offer = Offer(span, self.earlier.attempts(span), None)
            if not self.paused_filters or not self._is_paused(offer.span):
                return offer
            if offer.span.publication.expired(now):
                return offer  # to be dropped
            if not self.hold_back(offer):
                return None

    def pop(self, count: int) -> Span:
        """Remove and return this many messages from the front."""
        if self.returned.first() is None:
            return self._pop_queue(count)
        return self.returned.pop().span

    def _pop_queue(self, count: int) -> Span:
        span = self.queue.pop(count)
        if self.last_values is not None:
            self.last_values.leave_queue(span)
        return span

    def offers(self) -> Iterator[Offer]:
        """Yield all that is in memory, in order as far as there is one, several as one offer."""
        yield from self.returned
        for span in self.queue:
            yield Offer(span, self.earlier.attempts(span), None)

    def any(self) -> Offer | None:
        """Return the first messages in memory, whether they may be dispatched now or not.

        None if there are none, or those before all others are being read from disk.
        """
        for offer in self.returned:
            return offer
        span = self.queue.first()
        return None if span is None else Offer(span, self.earlier.attempts(span), None)

    def remove(self, offer: Offer, count: int = 1) -> Span:
        """Remove and return the first message of what `any` returned, or this many of the queue."""
        return offer.span if self.returned.remove(offer.span) else self._pop_queue(count)

    def put(self, offer: Offer, second: float) -> None:
        """Add a message, which waits until the monotonic `second`, unless it is superseded."""
        if self.last_values is None or not self.last_values.drops(offer.span):
            self.returned.put(offer, second)

    def hold_back(self, offer: Offer) -> bool:
        """Set the next one aside, which no consumer may have now; False if the limit is reached."""
        if not self.returned.holds_more:
            return False
        self.returned.hold(Offer(self.pop(1), offer.attempts, offer.avoid))
        return True

    def resume(self) -> None:
        """Make those next whose topic is no longer paused, or that somebody may read now."""
        self.returned.resume(self._is_paused)

    def _is_paused(self, span: Span) -> bool:
        topic = span.publication.topic_of(span.first)
        return any(topic_matches(each, topic) for each in self.paused_filters)
