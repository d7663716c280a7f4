"""What a person may want to know of clients, for whoever keeps it: ends, refusals and denials."""

from collections.abc import Callable
from typing import NamedTuple, TypeAlias

TAKEN_OVER = "another connection has this client id (0x8E)"
"""Why a connection ended whose client identifier another one has now."""


CLOSED_BY_PEER = "closed by the peer without DISCONNECT"
DISCONNECTED = "DISCONNECT"
STOPS = "the gateway stops (0x8B)"

EXPECTED = (TAKEN_OVER, CLOSED_BY_PEER, DISCONNECTED, STOPS)
"""Ends that nobody needs to look into; whoever takes over again and again is noticed else."""


class ConnectionEnd(NamedTuple):
    """A connection of an accepted client that ended after so many seconds."""

    client_id: str
    username: str | None
    peer: str
    seconds: float
    reason: str

    @property
    def expected(self) -> bool:
        """Whether it was the client that ended it, another connection, or the gateway's stop."""
        return self.reason in EXPECTED

    @property
    def taken_over(self) -> bool:
        """Whether another connection came with the same client identifier."""
        return self.reason == TAKEN_OVER


class ConnectRefusal(NamedTuple):
    """A CONNECT that was refused."""

    client_id: str
    username: str | None
    peer: str
    reason: str


class Denial(NamedTuple):
    """A topic that a client may not `write`, or a topic filter that it may not `read`."""

    client_id: str
    username: str | None
    right: str
    topic: str


Notice: TypeAlias = ConnectionEnd | ConnectRefusal | Denial


class Notices:
    """Calls everybody who listens; without listeners a notice costs next to nothing."""

    __slots__ = ("listeners",)

    def __init__(self) -> None:
        self.listeners: list[Callable[[Notice], None]] = []

    def give(self, notice: Notice) -> None:
        """Tell all who listen."""
        for listener in self.listeners:
            listener(notice)
