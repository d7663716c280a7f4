"""One memory limit for everything that clients can make the gateway hold."""

import heapq
import logging
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping
from typing import Any, Final, Protocol

from gateway.broker.client import SHOWN, Client
from gateway.broker.deadlines import Deadlines
from gateway.broker.instant import Instant
from gateway.broker.publishing.topic_admissions import TopicAdmissions
from gateway.mqtt.aliases.topic_aliases import AliasBudget
from gateway.routing.retained.retained import RetainedMessages
from gateway.routing.route import text_size
from gateway.routing.router import Router
from gateway.session.journal import NO_JOURNAL
from gateway.session.queue import overflow
from gateway.session.queue.memory import AT_ONCE, HEAD_BYTES, QueueMemory
from gateway.session.session import Session
from gateway.settings.when_full import WhenFull

BEGIN, END = 7 / 8, 3 / 4
"""The fraction of a bound above which the longest queues are shortened, and the target."""

SHORTENED_AT_ONCE = 16
"""Queues that are shortened in one pass; each drops half of its content at most."""

Cut = Callable[[Session, int], int]

Queue = tuple[int, int, Session]
"""What a session holds, as a negative number, and its index, which orders equal ones."""


class LongestQueues:
    """Shortens the longest queues to make memory available for others.

    The holder with the largest queues pays: a user, or all clients without a user name from one
    address. The longest of its queues is shortened, at the end that its policy drops. A queue whose
    policy refuses publishers drops nothing.
    """

    __slots__ = ("_channels", "_memory", "_sessions")

    def __init__(
        self,
        memory: QueueMemory,
        sessions: Mapping[str, Session],
        channels: Iterable[Session],
    ) -> None:
        self._memory = memory
        self._sessions = sessions
        self._channels = channels

    def shorten(self, maximum_memory: int) -> None:
        """Shorten queues where memory or disk is nearly full."""
        memory = self._memory
        excess = _excess(memory.bytes, maximum_memory)
        if excess > 0:
            self._shorten(excess, _queued_memory, overflow.cut_memory)
        excess = _excess(memory.disk_bytes, memory.maximum_disk_bytes)
        if excess > 0:
            self._shorten(excess, _queued_on_disk, overflow.cut_disk)

    def _shorten(self, excess: int, size_of: Callable[[Session], int], cut: Cut) -> None:
        queues, held = self._by_holder(size_of)
        for _ in range(SHORTENED_AT_ONCE):
            most = max(held, key=held.__getitem__, default="")
            if excess <= 0 or not queues.get(most):
                break
            size, order, session = heapq.heappop(queues[most])
            # at most half of a queue: then another one may be the longest
            freed = cut(session, min(excess, (1 - size) // 2))
            excess -= freed
            if freed:
                held[most] -= freed
                heapq.heappush(queues[most], (size + freed, order, session))
            else:
                # nothing of it can be dropped: do not choose it again
                held[most] += size

    def _by_holder(
        self, size_of: Callable[[Session], int]
    ) -> tuple[dict[str, list[Queue]], dict[str, int]]:
        """Return each holder's queues, the longest first, and their total size."""
        queues: dict[str, list[Queue]] = {}
        held: Counter[str] = Counter()
        for order, session in enumerate((*self._sessions.values(), *self._channels)):
            size = size_of(session) if session.queue.messages else 0
            if size and session.limits.when_full is not WhenFull.REJECT:
                queues.setdefault(session.holder, []).append((-size, order, session))
                held[session.holder] += size
        for each in queues.values():
            heapq.heapify(each)
        return queues, held


def _excess(held: int, maximum: int) -> int:
    """Return the bytes to be dropped, 0 below the threshold."""
    return held - int(maximum * END) if held > maximum * BEGIN else 0


def _queued_memory(session: Session) -> int:
    """Return about what is in memory only; of a tail on disk little is in memory."""
    return max(0, session.queue.memory_bytes - (HEAD_BYTES if session.queue.paged else 0))


def _queued_on_disk(session: Session) -> int:
    return 0 if session.journal is NO_JOURNAL else session.queue.bytes


logger = logging.getLogger(__name__)

INTERVAL = 1.0
"""Seconds between two allotments."""

SPARE = 8
"""What is freed when the buffers exceed their limit: an eighth of it."""

NAMED = 5
"""Clients that a log line names; there may be thousands."""

HANDSHAKE = 64 * 1024
"""Bytes of a TLS handshake, about: 45 KiB of OpenSSL's, and what the peer sent."""

BUFFERS = 8
"""The part reserved for buffers: an eighth of the limit, so that full queues close nobody."""

QUEUES = 2
"""The longest queues are shortened from about half of the limit on, if not before."""

_KEY: Final = "memory budget"
_GIVEN_UP: Final = "messages that were dropped"

SESSION = 1024
"""Bytes that a session occupies, about, without its identifier, messages and subscriptions."""

RESERVE = 16
"""The part reserved for idle clients: a sixteenth of the limit, so that clients with many messages
exclude no client without any."""


class Handshake(Protocol):
    """A connection whose client is not known yet."""

    def abort(self) -> None:
        """Close it now."""
        ...


class MemoryBudget:
    """Sums up what is held for clients, and closes connections above the limit.

    Queues, retained messages and subscriptions have bounds of their own. Each second, each of them
    may grow by all that is free, up to its own bound. So may all `buffers` together: incomplete
    packets, topic aliases of clients, and unsent output of slow readers. One part of the limit is
    reserved for what is `idle`, connections and sessions themselves, and one for buffers.

    A queue, retained message, subscription or session above the limit is refused as at its own
    bound. If buffers exceed theirs, connections that hold some are closed at once; if connections
    do, any may be closed. TLS handshakes are closed first, the oldest first, then connections
    without an accepted CONNECT, and within each kind the one that holds most.
    """

    __slots__ = (
        "_admissions",
        "_alias_budget",
        "_bounds",
        "_buffer_limit",
        "_connections",
        "_deadlines",
        "_handshakes",
        "_longest_queues",
        "_queue_memory",
        "buffers",
        "closed",
        "idle",
        "limit",
    )

    def __init__(
        self,
        limit: int,
        deadlines: Deadlines,
        connections: Collection[Client],
        sessions: Mapping[str, Session],
        channels: Iterable[Session],
        queue_memory: QueueMemory,
        retained: RetainedMessages,
        router: Router,
        alias_budget: AliasBudget,
        admissions: TopicAdmissions,
    ) -> None:
        self._deadlines = deadlines
        self._connections = connections
        self._queue_memory = queue_memory
        self._alias_budget = alias_budget
        self._admissions = admissions
        self.limit = limit
        self.buffers = 0  # bytes of all connections
        self.idle = 0  # bytes of all connections and sessions themselves
        self.closed = 0  # connections, since the start
        self._buffer_limit = limit  # bytes that the buffers may come to
        self._longest_queues = LongestQueues(queue_memory, sessions, channels)
        self._handshakes: dict[Handshake, None] = {}  # the oldest first
        parts: tuple[Any, ...] = (queue_memory, retained, router)
        self._bounds = [(part, part.maximum_bytes) for part in parts]
        deadlines.set(_KEY, 0.0, self._allot_again)
        queue_memory.on_released = self._forget_later

    def change(self, limit: int, queues: QueueMemory, maximum_subscription_bytes: int) -> None:
        """Apply other bounds from now on, for queues those of `queues`."""
        self.limit = limit
        self._queue_memory.maximum_disk_bytes = queues.maximum_disk_bytes
        bounds = queues.maximum_bytes, self._bounds[1][1], maximum_subscription_bytes
        parts = [part for part, _ in self._bounds]
        self._bounds = list(zip(parts, bounds, strict=True))
        self.allot()

    @property
    def bytes(self) -> int:
        """What is held for clients now."""
        aliases: int = self._alias_budget.figures.bytes_held
        held: int = sum([part.bytes for part, _ in self._bounds])
        return self.buffers + self.idle + held + aliases + self._admissions.held_bytes

    def allot(self) -> None:
        """Let each part grow by what is free."""
        reserved = max(0, self.limit // RESERVE - self.idle)
        free = self.limit - self.bytes - reserved
        self._buffer_limit = max(0, self.buffers + free)
        free = max(0, free - max(0, self.limit // BUFFERS - self.buffers))
        for part, bound in self._bounds:
            part.maximum_bytes = min(bound, part.bytes + free)

    def _allot_again(self, _: str, instant: Instant) -> None:
        self.shorten_queues(min(self._bounds[0][1], self.limit // QUEUES))
        self.allot()
        self._deadlines.set(_KEY, instant.monotonic + INTERVAL, self._allot_again)

    def shorten_queues(self, maximum_memory: int) -> None:
        """Shorten the longest queues if all together nearly reach their limit."""
        self._longest_queues.shorten(maximum_memory)

    def _forget_later(self) -> None:
        self._deadlines.set(_GIVEN_UP, 0.0, self._forget_some)

    def _forget_some(self, _: str, instant: Instant) -> None:
        """Forget some dropped messages of queues, and the rest in the next turns."""
        if self._queue_memory.forget_some(AT_ONCE):
            self._deadlines.set_next(_GIVEN_UP, instant, self._forget_some)

    def open(self, client: Client) -> None:
        """Count a new connection; above the limit connections are closed."""
        self._more_idle(client.occupied)

    def begin_handshake(self, handshake: Handshake) -> None:
        """Count a TLS handshake; above the limit the oldest ones are ended."""
        self._handshakes[handshake] = None
        self._more_idle(HANDSHAKE)

    def end_handshake(self, handshake: Handshake) -> None:
        """Stop counting a TLS handshake."""
        if handshake in self._handshakes:
            del self._handshakes[handshake]
            self.idle -= HANDSHAKE

    def _more_idle(self, size: int) -> None:
        self.idle += size
        if self.idle <= self.limit // RESERVE:
            return  # reserved for them; summing up everything takes microseconds
        excess = self.bytes - self.limit
        if excess > 0:
            # an eighth more: otherwise each new connection would close one
            excess += self.idle // SPARE
            excess -= self._end_handshakes(excess)
            if excess > 0:
                self._close(list(self._connections), excess)

    def begin_session(self, client_id: str) -> None:
        """Count a new session."""
        self.idle += session_bytes(client_id)

    def name_session(self, session: Session, username: str | None) -> None:
        """Count a session's new user name."""
        self.idle += text_bytes(username) - text_bytes(session.username)

    def end_session(self, session: Session) -> None:
        """Stop counting a session."""
        self.idle -= session_bytes(session.client_id) + text_bytes(session.username)

    def has_memory_for(self, client_id: str, username: str | None) -> bool:
        """Return whether a session with these names fits into the limit."""
        size = session_bytes(client_id) + text_bytes(username)
        if self.idle + size <= self.limit // RESERVE:
            return True
        return self.bytes + size <= self.limit

    def note(self, client: Client, below: int) -> None:
        """Count what a connection holds now, `below` of it between its socket and the broker.

        Above the limit connections are closed, possibly this one.
        """
        if client.aborted:
            return  # already forgotten; what it holds is freed with its socket
        client.held_below = below
        self._count(client)
        if self.buffers > self._buffer_limit:
            self._bound_buffers()

    def forget(self, client: Client) -> None:
        """Stop counting a connection."""
        self.buffers -= client.held
        self.idle -= client.occupied
        client.held = client.occupied = 0

    def count_again(self) -> None:
        """Count the output of slow readers again, at `Traffic.count_at`."""
        for client in self._connections:
            if client.held:
                self._count(client)
        self._bound_buffers()

    def _count(self, client: Client) -> None:
        held = client.connection.held + client.held_below + client.held_connect
        session = client.session
        if session is not None and session.connection is client.connection:
            held += session.inflight.held
        self.buffers += held - client.held
        client.held = held

    def _bound_buffers(self) -> None:
        """If buffers exceed their limit, close connections until an eighth of it is free."""
        self.allot()
        if self.buffers > self._buffer_limit:
            excess = self.buffers - self._buffer_limit + self._buffer_limit // SPARE
            # who is about to connect holds nothing that is needed
            self._close([each for each in self._connections if each.held], excess)

    def _close(self, holding: list[Client], excess: int) -> None:
        """Close the largest of these connections until that many bytes are freed."""
        before = self.closed
        lines: list[str] = []
        holding.sort(key=_held)
        while holding and excess > 0:
            client = holding.pop()
            size = _size(client)
            if len(lines) < NAMED:
                lines.append(f"{_name(client)} with {size}")
            excess -= size
            self.closed += 1
            self.forget(client)
            client.abort(NO_MEMORY)
        logger.warning(
            "clients may hold %d bytes and need more: closing the %d that hold most, %s",
            self.limit,
            self.closed - before,
            ", ".join(lines),
        )

    def _end_handshakes(self, excess: int) -> int:
        """End the oldest handshakes until that many bytes are freed, if possible.

        Return the bytes.
        """
        freed = 0
        while self._handshakes and freed < excess:
            handshake = next(iter(self._handshakes))
            self.end_handshake(handshake)
            freed += HANDSHAKE
            self.closed += 1
            handshake.abort()
        if freed:
            count = freed // HANDSHAKE
            logger.warning("clients may hold %d bytes: ending %d TLS handshakes", self.limit, count)
        return freed


NO_MEMORY = "clients hold more than the memory limit, and this one much of it"


def session_bytes(client_id: str) -> int:
    """Return about the bytes that a session itself occupies, without a user name."""
    return SESSION + text_bytes(client_id)


def text_bytes(text: str | None) -> int:
    """Return about the bytes of a text, which is stored as text and partly encoded, too."""
    return 0 if text is None else 2 * text_size(text)


def _name(client: Client) -> str:
    session = client.session
    return client.peer if session is None else f"{session.client_id[:SHOWN]!r} at {client.peer}"


def _held(client: Client) -> tuple[bool, int]:
    """Return a sort key; the greatest is closed first."""
    return client.session is None, _size(client)


def _size(client: Client) -> int:
    """Return what a client holds, with its session although that may outlive the connection."""
    size, session = client.held + client.occupied, client.session
    if session is None:
        return size
    return size + session_bytes(session.client_id) + text_bytes(session.username)
