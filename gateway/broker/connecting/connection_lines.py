"""Log lines of connections that begin and end, many of them in one record.

A record for each line takes eight times as long.
"""

import logging
from collections.abc import Iterator

from gateway.broker.client import SHOWN, Client, user_of
from gateway.broker.instant import Instant
from gateway.broker.notices import CLOSED_BY_PEER, DISCONNECTED, ConnectionEnd, Notices

logger = logging.getLogger(__name__)

AT_ONCE = 100
"""Pending lines that are written before the turn ends."""

PERIOD_SECONDS = 600.0
"""Length of a period in seconds, after which skipped connections of a client or host are summed
up."""

LINES_OF_CLIENT = 3
"""Connections of a client identifier that are logged in a period."""

LINES_OF_HOST = 100
"""The same for a host: a program may use a new identifier for each connection."""

MAXIMUM_COUNTED = 2_000
"""Clients, and hosts, that are counted; the one that was counted first makes way for a new one."""


class Count:
    """The connections of one client or host in a period."""

    __slots__ = ("connections", "last", "skipped", "until")

    def __init__(self, until: float, connections: int = 0) -> None:
        self.until = until
        self.connections = connections
        self.skipped = 0
        self.last = ""


class Counts:
    """The connections of clients, or of hosts, by name; `most` of a period are logged."""

    __slots__ = ("_kind", "_most", "counts")

    def __init__(self, kind: str, most: int) -> None:
        self._kind = kind
        self._most = most
        self.counts: dict[str, Count] = {}

    def may_log(self, name: str, now: float) -> bool:
        """Count a connection; return whether it may be logged."""
        count = self.counts.get(name)
        if count is None:
            count = self.counts[name] = Count(now + PERIOD_SECONDS)
        count.connections += 1
        if count.connections <= self._most:
            return True
        count.skipped += 1
        return False

    def over(self, now: float) -> Iterator[str]:
        """End periods that have passed, and the oldest above the limit.

        Yield a line for each summary.

        A name that exceeded its lines is counted further, and its connections are not logged.
        """
        counts = self.counts
        while counts:
            name = next(iter(counts))
            count = counts[name]
            if now < count.until and len(counts) <= MAXIMUM_COUNTED:
                return
            del counts[name]
            if not count.skipped:
                continue
            minutes, last = PERIOD_SECONDS / 60, count.last or "not yet"
            yield (
                f"{self._kind} {name!r} connected {count.skipped} more times within"
                f" {minutes:.0f} minutes; the last ended {last}"
            )
            if now >= count.until:
                counts[name] = Count(now + PERIOD_SECONDS, self._most)


class ConnectionLines:
    """Lines that are not logged yet; the turn's end calls `write`.

    A client that reconnects often has a few lines and then one for each period, written with the
    first connection after it. So has a host whose clients use a new identifier each time.
    """

    __slots__ = ("_clients", "_hosts", "_notices", "waiting")

    def __init__(self, notices: Notices) -> None:
        self._notices = notices
        self.waiting: list[tuple[str, tuple[object, ...]]] = []
        self._clients = Counts("client", LINES_OF_CLIENT)
        self._hosts = Counts("host", LINES_OF_HOST)

    def add(self, line: str, *values: object) -> None:
        """Store a line and its values until the turn ends."""
        self.waiting.append((line, values))
        if len(self.waiting) == AT_ONCE:
            self.write()

    def note_begin(self, client: Client, client_id: str, version: str, instant: Instant) -> None:
        """Note that a client was accepted, with its version of MQTT."""
        now = instant.monotonic
        for counts in (self._clients, self._hosts):
            for line in counts.over(now):
                self.add("%s", line)
        who = client_id[:SHOWN]
        client.logged = self._clients.may_log(who, now) and self._hosts.may_log(
            _host(client.peer), now
        )
        if client.logged:
            self.add("client %r connected from %s (MQTT %s)", who, client.peer, version)

    def note_end(self, client: Client, instant: Instant) -> None:
        """Note the end of an accepted client: who, how long, and why."""
        session = client.session
        if session is None:  # its refusal was logged
            return
        seconds = instant.monotonic - client.opened
        reason = DISCONNECTED if client.sent_disconnect else client.end_reason or CLOSED_BY_PEER
        who = session.client_id[:SHOWN]
        if client.logged:
            user = user_of(session.username)
            line = "client %r%s at %s ended after %.1f s: %s"
            self.add(line, who, user, client.peer, seconds, reason)
        else:
            found = (self._clients.counts.get(who), self._hosts.counts.get(_host(client.peer)))
            for count in found:
                if count is not None:
                    count.last = f"after {seconds:.1f} s: {reason}"
        end = ConnectionEnd(session.client_id, session.username, client.peer, seconds, reason)
        self._notices.give(end)

    def write(self) -> None:
        """Log the lines."""
        lines = self.waiting.copy()
        self.waiting.clear()  # the turn reads this list
        if logger.isEnabledFor(logging.INFO):
            logger.info("%s", "\n".join(line % values for line, values in lines))


def _host(peer: str) -> str:
    """Return the address of a peer without its port."""
    return peer.rpartition(":")[0] or peer
