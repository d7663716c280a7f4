"""A connected client, and the packets that it has handled in pieces."""

from collections.abc import Generator
from typing import TypeAlias

from gateway.broker.connecting.connection_info import (
    PLAIN,
    Authentication,
    Authenticator,
    ConnectionInfo,
)
from gateway.broker.instant import Instant
from gateway.mqtt.connection import Connection
from gateway.mqtt.errors import ProtocolError
from gateway.mqtt.packets import MQTT_5, Disconnect, Packet
from gateway.mqtt.properties import NO_PROPERTIES, Properties
from gateway.mqtt.reason_codes import ReasonCode
from gateway.session.session import Session

Pieces: TypeAlias = Generator[float | None, Instant, None]
"""The rest of a packet, which receives the instant of each piece and ends with the packet.

Other clients are served between two pieces. It yields the seconds until it can continue, None for
at once.
"""


def _nothing() -> Pieces:
    while True:
        yield None


HELD: Pieces = _nothing()
"""Stands for the pieces of a packet that cannot continue yet, as a CONNECT that is being decided.

What follows it waits until `Client.pieces` is something else, and the connection is notified of
output.
"""

FILTER = 16
"""The fixed cost of a topic filter beside its characters: reading, checking and answering it."""

WORK = 1_500
"""Cost of one piece: some 3 ms in plain Python, for short filters as for deep ones."""


class Piece:
    """The cost since other clients were served last."""

    __slots__ = ("_done",)

    def __init__(self) -> None:
        self._done = 0

    def ends_with(self, topic_filter: str) -> bool:
        """Count a topic filter; return whether the piece ends with it."""
        self._done += FILTER + len(topic_filter)
        if self._done < WORK:
            return False
        self._done = 0
        return True


KEEP_ALIVE_TOLERANCE = 1.5
"""Keep alive intervals of silence before the connection is closed [MQTT-3.1.2-22]."""


SHOWN = 80
"""Characters of a client's text that a reason or a log line repeats."""


class Client:
    """One network connection of a client; `session` is None until its CONNECT is accepted."""

    __slots__ = (
        "aborted",
        "authentication",
        "authenticator",
        "closing",
        "connection",
        "end_reason",
        "held",
        "held_below",
        "held_connect",
        "info",
        "keep_alive",
        "last_received",
        "logged",
        "occupied",
        "opened",
        "peer",
        "pieces",
        "problem_information",
        "sent_disconnect",
        "session",
        "skipping",
        "skips",
    )

    def __init__(
        self,
        connection: Connection,
        authenticator: Authenticator,
        peer: str,
        now: float,
        info: ConnectionInfo = PLAIN,
    ) -> None:
        self.info = info
        self.connection = connection
        self.authenticator = authenticator
        self.peer = peer  # address and port, for logs
        self.session: Session | None = None
        self.authentication: Authentication | None = None  # by the method that CONNECT named
        self.pieces: Pieces | None = None  # of its last packet, to be handled before the next
        self.keep_alive = 0
        self.opened = now
        self.last_received = now
        self.end_reason = ""  # why the gateway ended it, for the log
        self.logged = True  # its beginning was logged, so its end is, too
        self.closing = False  # the network connection ends after its output is sent
        self.aborted = False  # the network connection ends at once, unsent output included
        self.occupied = info.occupied  # fixed bytes, 0 once it is not counted any more
        self.held = 0  # bytes in its buffers, as last counted by `MemoryBudget.note`
        self.held_below = 0  # of these, between the socket and here
        self.held_connect = 0  # of these, in a CONNECT that is being decided
        self.sent_disconnect = False  # by DISCONNECT: the client sends nothing more [MQTT-3.14.4-1]
        self.problem_information = True
        self.skips = 0  # publications that are not joined with the next after a failed attempt
        self.skipping = 0  # of these, those still to come

    @property
    def proven(self) -> bool:
        """Whether the client is who its user name says, if it has one."""
        return (
            self.info.username is not None
            or self.authentication is not None
            or self.authenticator.proves
        )

    def send(self, packet: Packet, commit: int = 0) -> None:
        """Queue a packet; it is sent once every batch up to `commit` is on disk."""
        self.connection.send(packet, commit)

    def disconnect(self, reason_code: ReasonCode, reason: str = "") -> None:
        """End the connection, in MQTT 5 with a DISCONNECT that gives the reason."""
        if self.closing:
            return
        self.end_reason = f"{reason or reason_code.name} (0x{reason_code:02X})"
        if self.connection.version == MQTT_5 and self.session is not None:
            # [MQTT-3.14.2-3]: no Reason String beyond the client's Maximum Packet Size
            self.send(Disconnect(reason_code, self.explain(reason, always=True)))
        self.close()

    def close(self) -> None:
        """End the connection after what is queued; the session continues without it.

        [MQTT-3.14.4-1]: nothing is sent after a DISCONNECT.
        """
        self.closing = True
        self.connection.output.release()
        if self.session is not None and self.session.connection is self.connection:
            self.session.detach()
        self.connection.on_output()

    def abort(self, reason: str) -> None:
        """End the connection at once and drop unsent output."""
        self.end_reason = reason
        self.aborted = True
        self.pieces = None
        self.connection.discard()
        self.close()

    def explain(self, reason: str, *, always: bool = False) -> Properties:
        """Return a Reason String, unless the client refused them [MQTT-3.1.2-29]."""
        if not reason or not (always or self.problem_information):
            return NO_PROPERTIES
        return Properties(reason_string=reason)


def user_of(username: str | None) -> str:
    """Return a user's name for a log line; empty without one."""
    return "" if username is None else f" of user {username[:SHOWN]!r}"


def session_of(client: Client) -> Session:
    """Return the session of a client; raise ProtocolError before CONNECT [MQTT-3.1.0-1]."""
    if client.session is None:
        raise ProtocolError("the first packet is not CONNECT")
    return client.session
