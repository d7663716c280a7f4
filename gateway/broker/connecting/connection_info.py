"""What a listener says of a network connection, and asks of the client behind it."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from gateway.access.policy import OPEN, AccessPolicy
from gateway.broker.connecting.authentication_method import AuthenticationMethod
from gateway.session.durability_class import DurabilityClass

PLAIN_BYTES = 2 * 1024
"""Bytes of memory that a connection occupies by itself, idle."""


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
