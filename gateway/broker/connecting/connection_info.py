"""What a listener knows of a network connection, and how its client is authenticated."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple, Protocol, TypeAlias

from gateway.access.access import OPEN, AccessPolicy
from gateway.broker.instant import Instant
from gateway.mqtt.packets import Connect
from gateway.session.durability_class import DurabilityClass

PLAIN_BYTES = 2 * 1024
"""Bytes of memory that an idle connection occupies."""


Decide: TypeAlias = Callable[[bool | None, Instant], None]
"""Gets whether a password is right, None if it could not be checked, and the instant."""


class Credentials(NamedTuple):
    """The credentials of a CONNECT, and its address without a port."""

    address: str
    username: str | None
    password: bytes | None


class Authenticator(Protocol):
    """Checks the user name and password of a CONNECT."""

    proves: bool
    """Whether an accepted client is who its user name says."""

    def check(self, credentials: Credentials, instant: Instant, decide: Decide) -> None:
        """Call `decide`, now or in a later turn, with whether the client may connect."""
        ...


class Anonymous:
    """Accepts every client, whatever user name it gives."""

    proves = False

    def check(self, credentials: Credentials, instant: Instant, decide: Decide) -> None:  # noqa: ARG002 - a shape
        """Accept at once."""
        decide(True, instant)  # noqa: FBT003 - the answer


class AuthenticationFailedError(Exception):
    """The client could not prove its identity; the text is sent to it."""


class Step(NamedTuple):
    """The answer to the client; a user name means that it has proved to be that user."""

    data: bytes | None = None
    username: str | None = None


class Exchange(Protocol):
    """One exchange with one client, at its CONNECT or when it authenticates again."""

    def step(self, data: bytes | None) -> Step:
        """Accept the client's Authentication Data; raise AuthenticationFailedError."""
        ...


class AuthenticationMethod(Protocol):
    """An authentication method, by the name that clients give in CONNECT."""

    name: str

    def begin(self) -> Exchange:
        """Return a new exchange."""
        ...


class Authentication:
    """The state of one connection's authentication.

    `exchange` is the one that is running, `connect` the CONNECT until the first succeeds.
    """

    __slots__ = ("connect", "exchange", "method")

    def __init__(self, method: AuthenticationMethod, connect: Connect) -> None:
        self.method = method
        self.connect: Connect | None = connect
        self.exchange: Exchange | None = method.begin()


@dataclass(frozen=True, slots=True)
class ConnectionInfo:
    """One network connection before its first packet.

    None means that the broker's default applies.
    """

    opened: float | None = None
    """Monotonic second of its beginning, before TLS and WebSocket; None means now."""

    username: str | None = None
    """The user of the client's certificate: its user name whatever CONNECT says."""

    maximum_packet_size: int | None = None
    """The largest packet that is accepted, in bytes."""

    maximum_keep_alive: int | None = None
    """Server Keep Alive in seconds: what an MQTT 5 client uses instead of a longer one."""

    refusal: str | None = None
    """Why the connection exceeds a limit: its CONNECT is answered with that and 0x97."""

    durability_class: DurabilityClass | None = None
    """How soon the client's changes must be on disk, unless an entry for clients matches."""

    delivery: str | None = None
    """The client's delivery class, unless a rule for clients matches."""

    where_identity: bool = True
    """Whether the client's `$where` may use the publisher's client identifier and user name."""

    local: bool = False
    """Whether the client is on this machine: on loopback or at a Unix socket."""

    occupied: int = PLAIN_BYTES
    """Bytes of memory of an idle connection, with its TLS and WebSocket layers."""

    access: AccessPolicy = OPEN
    """What clients of the listener may read and write."""

    listener: str = ""
    """The name of the listener, the same after a restart."""

    anyone_takes_over: bool = False
    """Whether the client may end another user's session that has its client identifier."""

    authentication_methods: Mapping[str | None, AuthenticationMethod] = field(default_factory=dict)
    """Methods of enhanced authentication by name; user name and password are none of them."""


PLAIN = ConnectionInfo()
"""A connection with all defaults."""
