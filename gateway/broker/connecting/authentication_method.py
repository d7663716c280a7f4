"""The interface for methods of enhanced authentication (MQTT 5, section 4.12); none is built in."""

from dataclasses import dataclass
from typing import Protocol


class AuthenticationFailedError(Exception):
    """The client could not prove who it is; the text is what it is told."""


@dataclass(frozen=True, slots=True)
class Step:
    """What the client is answered; with a user name it has proved to be that user."""

    data: bytes | None = None
    username: str | None = None


class Exchange(Protocol):
    """One conversation with one client, at its CONNECT or when it authenticates again."""

    def step(self, data: bytes | None) -> Step:
        """Take the client's Authentication Data; raise AuthenticationFailedError."""
        ...


class AuthenticationMethod(Protocol):
    """A way to prove who one is, by the name that clients give in CONNECT."""

    name: str

    def begin(self) -> Exchange:
        """Return a new conversation."""
        ...
