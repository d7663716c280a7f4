"""Events of clients that a person may want to know: ends, refusals and denials."""

from collections.abc import Callable
from typing import NamedTuple, TypeAlias

TAKEN_OVER = "another connection has this client id (0x8E)"
"""Reason for the end of a connection whose client identifier another one uses now."""


CLOSED_BY_PEER = "closed by the peer without DISCONNECT"
DISCONNECTED = "DISCONNECT"
STOPS = "the gateway stops (0x8B)"

EXPECTED = (TAKEN_OVER, CLOSED_BY_PEER, DISCONNECTED, STOPS)
"""Ends that need no attention; repeated take-overs are noticed elsewhere."""


class ConnectionEnd(NamedTuple):
    """A connection of an accepted client that ended after so many seconds."""

    client_id: str
    username: str | None
    peer: str
    seconds: float
    reason: str

    @property
    def expected(self) -> bool:
        """Whether the client, a take-over, or the gateway's stop ended it."""
        return self.reason in EXPECTED

    @property
    def taken_over(self) -> bool:
        """Whether another connection has taken the client identifier over."""
        return self.reason == TAKEN_OVER


class ConnectRefusal(NamedTuple):
    """A refused CONNECT."""

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
    """Calls all listeners; without listeners a notice costs next to nothing."""

    __slots__ = ("listeners",)

    def __init__(self) -> None:
        self.listeners: list[Callable[[Notice], None]] = []

    def give(self, notice: Notice) -> None:
        """Notify all listeners."""
        for listener in self.listeners:
            listener(notice)
