"""The event loop's selector: it serves MQTT sockets itself and passes the others to asyncio.

In asyncio the way from a ready socket to its protocol costs more than most packets do. Here a
poll's sockets are served one after another, then the turn ends; asyncio runs only if something of
its own is ready, due or scheduled.
"""

import math
import select
import selectors
from collections.abc import Callable, Iterator, Mapping
from time import monotonic
from typing import Any, Protocol

from gateway.storage.engine.wake_up import WakeUp

READ, WRITE = select.EPOLLIN | select.EPOLLRDHUP, select.EPOLLOUT

ENDED = select.EPOLLRDHUP | select.EPOLLHUP | select.EPOLLERR
"""Events of a socket whose peer has closed its end, or is gone."""

MAXIMUM_EVENTS = 256
"""Sockets that one poll returns, and a turn serves; others come first in the next poll.

1,024 of them with a small PUBLISH each were 69 ms of one turn.
"""

FEW_EVENTS = 32
"""The size of a poll after one that returned fewer: it clears less memory."""

READ_SIZE = 256 * 1024
"""Bytes that are read from a socket before other clients are served."""

SHORT = 250e-6
"""The longest wait, in seconds, after which peers seem to answer immediately."""

STEADY = 16
"""Short waits in a row after which the next one is a busy wait."""

WORTHWHILE = 15e-6
"""Seconds that busy waits may take on average: about the cost of falling asleep and waking up, most
of it for cold caches."""

LONGEST_AWAKE = 100e-6
"""Seconds after which a busy wait ends, and sleep begins."""

WEIGHT = 1 / 32
"""Weight of the last wait in the average of busy waits."""

LONGEST_PAUSE = 4_096
"""The most short waits without busy waiting after it was not worthwhile."""


READING = 0.0025
"""Seconds of one cycle in which sockets are read fully; after that, a few bytes of each."""

NEVER = math.inf

BEGINS = -1.0
"""Stands for the end of READING until a cycle's first socket is read."""

# Compiled, these are C names.
_ENDED = ENDED
_SHORT = SHORT
_STEADY = STEADY


class Served(Protocol):
    """Called when its socket is ready."""

    def ready(self, events: int) -> None:
        """Read and write as READ and WRITE say; EPOLLERR and EPOLLHUP mean both."""
        ...


class SocketSelector:
    """An epoll that asyncio uses as its selector, and that serves other sockets itself.

    It has the methods of `selectors.BaseSelector` that asyncio uses, but is no subclass, which
    could not be compiled. `end_of_turn` is called when the sockets of a poll were served and one of
    them has `begun` a turn. A cycle is as many polls as return each ready socket once. When its
    sockets have used READING seconds, a socket with more than a few bytes is postponed with
    `later`, and one whose peer has ended is served in another cycle. Code that schedules something
    on the loop meanwhile sets `scheduled`, and `select` returns. `wake_up` is called when it is
    due.
    """

    __slots__ = (
        "_epoll",
        "_events",
        "_keys",
        "_pause",
        "_polls_left",
        "_served",
        "_short_waits",
        "_usual_wait",
        "_watched",
        "begun",
        "end_of_turn",
        "full",
        "later",
        "polls",
        "reading_until",
        "scheduled",
        "serving",
        "wake_up",
    )

    def __init__(self) -> None:
        self._epoll = select.epoll()
        self._keys: dict[int, selectors.SelectorKey] = {}
        self._served: list[Served | None] = []  # by descriptor, those of asyncio included
        self._events = FEW_EVENTS  # the size of the next poll
        self._short_waits = 0  # in a row; negative during a pause
        self._usual_wait = 0.0  # seconds, of busy waits
        self._pause = STEADY  # short waits of the next pause
        self.begun = False
        self.polls = 0  # since the start
        self.full = False  # more sockets are ready than this cycle's polls have returned
        self._polls_left = 0  # of this cycle
        self._watched = 0  # sockets that are served
        self.reading_until = NEVER  # the second at which READING ends, in a cycle of many sockets
        self.later: Callable[[Callable[[], None]], None] = lambda go_on: go_on()
        self.scheduled = False
        self.serving = False
        self.wake_up = WakeUp()
        self.end_of_turn: Callable[[], None] = lambda: None

    def serve(self, descriptor: int, served: Served, events: int) -> None:
        """Call `served` when the socket is ready for `events`; without events forget it.

        Raises ValueError for the descriptor of a closed socket.
        """
        if descriptor < 0:
            raise ValueError(f"{descriptor} is no descriptor")
        self._make_place(descriptor)
        # epoll has separate calls for new and known descriptors
        known = self._served[descriptor] is not None
        if not events:
            if known:
                self.forget(descriptor)
                self._epoll.unregister(descriptor)
        elif known:
            self._epoll.modify(descriptor, events)
        else:
            self._epoll.register(descriptor, events)
            self._served[descriptor] = served
            self._watched += 1

    def forget(self, descriptor: int) -> None:
        """Stop serving a socket that is about to be closed, which removes it from the epoll."""
        if self._served[descriptor] is not None:
            self._served[descriptor] = None
            self._watched -= 1

    def _make_place(self, descriptor: int) -> None:
        missing = descriptor + 1 - len(self._served)
        if missing > 0:
            self._served.extend([None] * missing)

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        """Serve sockets until asyncio has something to do, or `timeout` seconds have passed."""
        self.scheduled = False
        # for epoll, -1 means to wait without a limit
        seconds = -1.0 if timeout is None else max(timeout, 0.0)
        now = monotonic()
        end = now + seconds
        wake_up = self.wake_up
        while True:
            # with 0 seconds asyncio has callbacks to run, and nothing is to be waited for
            polled = self._stay_awake(now) if self._short_waits >= _STEADY and seconds else None
            if not polled:
                wait = seconds if wake_up.at == NEVER else self._sooner(seconds, now)
                polled = self._epoll.poll(wait, self._events)
            count = len(polled)
            self.polls += 1
            if count > 1 or self._events >= MAXIMUM_EVENTS:
                self._count_polls(count)
            else:
                self.reading_until = NEVER  # nobody waits for this cycle's only socket
            ready = self._serve(polled)
            if self.begun:
                self.begun = False
                self.end_of_turn()
            before, now = now, monotonic()
            # a poll without waiting says nothing about the peers
            if seconds:
                waits = self._short_waits
                self._short_waits = waits + 1 if now - before < _SHORT else min(waits, 0)
            if wake_up.at <= now:  # it is postponed far more often than reached: no timer
                wake_up.ring()
            # asyncio has something to do, or the time is over
            if ready or self.scheduled or not count:
                return ready
            # asyncio's next timer stays where it is: only the rest of the time is left
            if timeout is not None:
                seconds = end - now
                if seconds <= 0.0:
                    return ready

    def _count_polls(self, count: int) -> None:
        """Set the size of the next poll, and how many the cycle has after this one of `count`."""
        if not self._polls_left:
            self.reading_until = BEGINS
        if count < MAXIMUM_EVENTS:
            self._polls_left = 0
            self._events = FEW_EVENTS if count < FEW_EVENTS else MAXIMUM_EVENTS
        else:
            # An epoll returns sockets that stay ready after all others. So this many polls
            # return every ready socket once.
            self._polls_left = (self._polls_left or 1 + (self._watched - 1) // count) - 1
            self._events = MAXIMUM_EVENTS
        # the turn then postpones what is not urgent
        self.full = self._polls_left > 0

    def _serve(self, polled: list[tuple[int, int]]) -> list[tuple[selectors.SelectorKey, int]]:
        """Serve the sockets of a poll; return what else is ready, for asyncio."""
        ready = []
        self.serving = True
        for descriptor, events in polled:
            served = self._served[descriptor]
            if served is not None:
                # An end frees a session and its will, which takes long, and thousands may end
                # together.
                if not events & _ENDED or self.has_time():
                    served.ready(events)
            elif (key := self._keys.get(descriptor)) is not None:
                # asyncio runs its callbacks after `select` returns
                ready.append((key, _for_asyncio(events) & key.events))
        self.serving = False
        return ready

    def has_time(self) -> bool:
        """Return whether a socket may be read fully; otherwise all others come first."""
        now, until = monotonic(), self.reading_until
        if until == BEGINS:
            self.reading_until = now + READING
            return True
        return now < until

    def _sooner(self, seconds: float, now: float) -> float:
        """Return `seconds` to wait, -1 meaning for ever, or fewer if `wake_up` is due before."""
        due = max(self.wake_up.at - now, 0.0)
        return due if seconds < 0.0 else min(due, seconds)

    def _stay_awake(self, now: float) -> list[tuple[int, int]]:
        """Return the descriptors that become ready within LONGEST_AWAKE, and their events.

        Peers in the middle of a conversation may answer in less time than it takes to fall asleep
        and wake up, and a faster answer makes them faster. Only trying shows whether they do. After
        a failure the next try comes later each time.
        """
        end = now + LONGEST_AWAKE
        while True:
            polled = self._epoll.poll(0, self._events)
            after = monotonic()
            if polled or after >= end:
                break
        # a busy wait counts as a short one, so that the next wait is busy, too
        self._short_waits = STEADY
        self._usual_wait += (after - now - self._usual_wait) * WEIGHT  # an exponential mean
        if self._usual_wait > WORTHWHILE:
            self._usual_wait = 0.0
            self._short_waits = -self._pause
            self._pause = min(2 * self._pause, LONGEST_PAUSE)
        elif self._pause > STEADY:
            self._pause -= 1
        return polled

    def register(self, fileobj: Any, events: int, data: Any = None) -> selectors.SelectorKey:
        """Watch a file of asyncio's."""
        descriptor = _descriptor(fileobj)
        if descriptor in self._keys:
            raise KeyError(f"{fileobj!r} is already registered")
        self._epoll.register(descriptor, _for_epoll(events))
        self._make_place(descriptor)
        key = selectors.SelectorKey(fileobj, descriptor, events, data)
        self._keys[descriptor] = key
        return key

    def unregister(self, fileobj: Any) -> selectors.SelectorKey:
        """Stop watching a file of asyncio's."""
        key = self._keys.pop(_descriptor(fileobj))
        try:
            self._epoll.unregister(key.fd)
        except OSError:  # it was closed before, which removed it from the epoll
            return key
        return key

    def modify(self, fileobj: Any, events: int, data: Any = None) -> selectors.SelectorKey:
        """Watch a file of asyncio's for other events."""
        key = self._keys[_descriptor(fileobj)]
        if events != key.events:
            self._epoll.modify(key.fd, _for_epoll(events))
        key = self._keys[key.fd] = selectors.SelectorKey(fileobj, key.fd, events, data)
        return key

    def get_key(self, fileobj: Any) -> selectors.SelectorKey:
        """Return the key of a file of asyncio's; raise KeyError without one."""
        return self._keys[_descriptor(fileobj)]

    def get_map(self) -> Mapping[Any, selectors.SelectorKey]:
        """Return what asyncio watches, by file or descriptor."""
        return _Keys(self._keys)

    def close(self) -> None:
        """Stop watching everything."""
        self._epoll.close()
        self._keys.clear()
        self._served.clear()


class _Keys(Mapping[Any, selectors.SelectorKey]):
    """Keys by descriptor or by an object that has one."""

    def __init__(self, keys: dict[int, selectors.SelectorKey]) -> None:
        self._keys = keys

    def __getitem__(self, fileobj: Any) -> selectors.SelectorKey:
        return self._keys[_descriptor(fileobj)]

    def __len__(self) -> int:
        return len(self._keys)

    def __iter__(self) -> Iterator[int]:
        return iter(self._keys)


def _descriptor(fileobj: Any) -> int:
    return fileobj if isinstance(fileobj, int) else int(fileobj.fileno())


def _for_epoll(events: int) -> int:
    read = READ if events & selectors.EVENT_READ else 0
    return read | (WRITE if events & selectors.EVENT_WRITE else 0)


def _for_asyncio(events: int) -> int:
    """Return the events as asyncio knows them; an error means both reading and writing."""
    read = selectors.EVENT_READ if events & ~WRITE else 0
    return read | (selectors.EVENT_WRITE if events & ~READ else 0)
