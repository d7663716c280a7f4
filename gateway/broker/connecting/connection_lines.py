"""Log lines of connections that begin and end, many of them as one record.

A record of its own for each line takes eight times as long.
"""

import logging
from typing import TYPE_CHECKING

from gateway.broker.client import Client
from gateway.broker.connecting.admission import SHOWN, user_of
from gateway.broker.instant import Instant

if TYPE_CHECKING:
    from gateway.broker.broker import Broker

logger = logging.getLogger(__name__)

AT_ONCE = 100
"""Lines that are gathered before they are written, where the turn does not end before."""

CLOSED_BY_PEER = "closed by the peer without DISCONNECT"


def note_line(broker: "Broker", line: str, *values: object) -> None:
    """Keep a line, and the values that are put into it, until the turn ends."""
    lines = broker.connection_lines
    lines.append((line, values))
    if len(lines) == AT_ONCE:
        write_lines(broker)


def note_end(broker: "Broker", client: Client, instant: Instant) -> None:
    """Keep the line for a client that had been let in: who, how long, and why it ended."""
    session = client.session
    if session is None:  # its refusal was told
        return
    seconds = instant.monotonic - client.opened
    reason = "DISCONNECT" if client.said_goodbye else client.end_reason or CLOSED_BY_PEER
    who, user = session.client_id[:SHOWN], user_of(session.username)
    note_line(
        broker, "client %r%s at %s ended after %.1f s: %s", who, user, client.peer, seconds, reason
    )


def write_lines(broker: "Broker") -> None:
    """Log what was kept. Who runs the turns calls this at the end of each that has lines."""
    lines, broker.connection_lines = broker.connection_lines, []
    if logger.isEnabledFor(logging.INFO):
        logger.info("%s", "\n".join(line % values for line, values in lines))
