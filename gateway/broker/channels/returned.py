"""Messages of a channel that stand before its queue, since they were taken from it already."""

import heapq
from collections import deque
from collections.abc import Callable, Iterator
from itertools import chain
from math import inf

from gateway.broker.channels.offer import Offer
from gateway.session.queue.bounds import HEAD_BYTES
from gateway.session.span import Span


class ReturnedMessages:
    """Those that are next, those that come back later, and those that are put aside.

    Of the latter the topics are paused, or no consumer may read them now. There are up to
    `maximum_held`, or 1 MiB: what is behind them waits then.
    """

    __slots__ = ("_held", "_held_bytes", "_later", "_next", "_order", "maximum_held")

    def __init__(self, maximum_held: int) -> None:
        self.maximum_held = maximum_held
        self._next: deque[Offer] = deque()
        self._held: deque[Offer] = deque()
        self._held_bytes = 0
        self._later: list[tuple[float, int, Offer]] = []  # a heap, by second
        self._order = 0  # of those of the same second

    def __len__(self) -> int:
        return len(self._next) + len(self._held) + len(self._later)

    def __iter__(self) -> Iterator[Offer]:
        return chain(self._held, self._next, (each for _, _, each in self._later))

    def first(self) -> Offer | None:
        """Return the one that is next, None if there is none."""
        return self._next[0] if self._next else None

    def pop(self) -> Offer:
        """Remove and return the one that is next."""
        return self._next.popleft()

    def put(self, offer: Offer, second: float = 0.0) -> None:
        """Add a message, which is out of the way until the monotonic `second`."""
        if second:
            self._order += 1
            heapq.heappush(self._later, (second, self._order, offer))
        else:
            self._next.append(offer)

    def come_back(self, now: float) -> float:
        """Let those be next whose second has come; return that of the one behind."""
        while self._later and self._later[0][0] <= now:
            self._next.append(heapq.heappop(self._later)[2])
        return self._later[0][0] if self._later else inf

    @property
    def put_aside(self) -> int:
        """How many messages are put aside."""
        return len(self._held)

    @property
    def holds_more(self) -> bool:
        """Whether there is room for another message to be put aside."""
        return len(self._held) < self.maximum_held and self._held_bytes < HEAD_BYTES

    def hold(self, offer: Offer) -> None:
        """Put a message aside until `resume`."""
        self._held.append(offer)
        self._held_bytes += offer.span.size

    def resume(self, is_paused: Callable[[Span], bool]) -> None:
        """Let those be next, before all others, whose topic is not paused any more."""
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
