"""What a listener says of a network connection, and how the client behind it is authenticated."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple, Protocol, TypeAlias

from gateway.access.access import OPEN, AccessPolicy
from gateway.broker.instant import Instant
from gateway.mqtt.packets import Connect
from gateway.session.durability_class import DurabilityClass

PLAIN_BYTES = 2 * 1024
"""Bytes of memory that a connection occupies by itself, idle."""


Decide: TypeAlias = Callable[[bool | None, Instant], None]
"""Takes whether a password is right, None if there was no room to look, and the instant."""


class Credentials(NamedTuple):
    """What a CONNECT says of its client, and the address that it comes from, without a port."""

    address: str
    username: str | None
    password: bytes | None


class Authenticator(Protocol):
    """Decides about the user name and password of a CONNECT."""

    proves: bool
    """Whether a client that it lets in is who its user name says."""

    def check(self, credentials: Credentials, instant: Instant, decide: Decide) -> None:
        """Call `decide`, now or in a later turn, with whether the client may connect."""
        ...


class Anonymous:
    """Lets everyone in, whatever user name they give."""

    proves = False

    def check(self, credentials: Credentials, instant: Instant, decide: Decide) -> None:  # noqa: ARG002 - a shape
        """Decide at once that the client may."""
        decide(True, instant)  # noqa: FBT003 - the answer


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


class Authentication:
    """How far one connection has come.

    `exchange` is the conversation that goes on, `connect` the CONNECT until the first succeeded.
    """

    __slots__ = ("connect", "exchange", "method")

    def __init__(self, method: AuthenticationMethod, connect: Connect) -> None:
        self.method = method
        self.connect: Connect | None = connect
        self.exchange: Exchange | None = method.begin()


@dataclass(frozen=True, slots=True)
class ConnectionInfo:
    """One network connection before its first packet; None where the broker's own rule holds."""

    opened: float | None = None
    """Monotonic second of its beginning, before TLS and WebSocket; None is the present one."""

    username: str | None = None
    """Whom the client's certificate names: its user name whatever CONNECT says."""

    maximum_packet_size: int | None = None
    """Bytes of a packet that is taken."""

    maximum_keep_alive: int | None = None
    """Seconds of Keep Alive beyond which an MQTT 5 client is told to use this."""

    refusal: str | None = None
    """Why there is no room for it: the answer to its CONNECT, with 0x97."""

    durability_class: DurabilityClass | None = None
    """How soon what the client does has to be on disk, where no entry for clients says else."""

    delivery: str | None = None
    """The delivery class of the client, where no rule for clients says else."""

    where_identity: bool = True
    """Whether the client's `$where` may ask for a publisher's client identifier and user name."""

    local: bool = False
    """Whether the client is on this machine: on loopback or at a Unix socket."""

    occupied: int = PLAIN_BYTES
    """Bytes of memory that the connection occupies by itself, with TLS and WebSocket below it."""

    access: AccessPolicy = OPEN
    """What clients of the listener may read and write."""

    listener: str = ""
    """The name of the listener, the same after a restart."""

    anyone_takes_over: bool = False
    """Whether the client may end the session of another user that has its client identifier."""

    authentication_methods: Mapping[str | None, AuthenticationMethod] = field(default_factory=dict)
    """Methods of enhanced authentication, by their names; user name and password are none."""


PLAIN = ConnectionInfo()
"""A connection that is like any other."""
