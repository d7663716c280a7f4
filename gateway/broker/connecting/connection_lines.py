"""Log lines of connections that begin and end, many of them as one record.

A record of its own for each line takes eight times as long.
"""

import logging

from gateway.broker.client import SHOWN, Client, user_of
from gateway.broker.instant import Instant
from gateway.broker.notices import ConnectionEnd, Notices

logger = logging.getLogger(__name__)

AT_ONCE = 100
"""Lines that are gathered before they are written, where the turn does not end before."""

CLOSED_BY_PEER = "closed by the peer without DISCONNECT"


class ConnectionLines:
    """Lines that are not logged yet; whoever runs the turns calls `write` at the end of each."""

    __slots__ = ("_notices", "waiting")

    def __init__(self, notices: Notices) -> None:
        self._notices = notices
        self.waiting: list[tuple[str, tuple[object, ...]]] = []

    def add(self, line: str, *values: object) -> None:
        """Keep a line, and the values that are put into it, until the turn ends."""
        self.waiting.append((line, values))
        if len(self.waiting) == AT_ONCE:
            self.write()

    def note_end(self, client: Client, instant: Instant) -> None:
        """Note the end of a client that had been accepted: who, how long, and why it ended."""
        session = client.session
        if session is None:  # its refusal has a line
            return
        seconds = instant.monotonic - client.opened
        reason = "DISCONNECT" if client.said_goodbye else client.end_reason or CLOSED_BY_PEER
        who, user = session.client_id[:SHOWN], user_of(session.username)
        self.add(
            "client %r%s at %s ended after %.1f s: %s", who, user, client.peer, seconds, reason
        )
        end = ConnectionEnd(session.client_id, session.username, client.peer, seconds, reason)
        self._notices.give(end)

    def write(self) -> None:
        """Log the lines."""
        lines, self.waiting = self.waiting, []
        if logger.isEnabledFor(logging.INFO):
            logger.info("%s", "\n".join(line % values for line, values in lines))
