"""The settings of an uplink as plain values, filled in by `gateway.app`."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from gateway.uplink.batch_limits import BatchLimits
from gateway.uplink.landing_bounds import NO_BOUNDS, LandingBounds
from gateway.uplink.link.pacing import NO_LIMITS, PacingLimits
from gateway.uplink.link.schedule import Schedule
from gateway.uplink.rules.targets import Target
from gateway.uplink.topic_bounds import MQTT_BOUNDS, TopicBounds

if TYPE_CHECKING:
    from gateway.uplink.context import UplinkContext
    from gateway.uplink.destination import Destination

WINDOW = 1_000
"""Maximum messages in flight; bounds the duplicates that a crash can cause.

A commit ends a quarter of them at once in a drain, so a small window is many commits."""

PUBACK_SECONDS = 30.0
"""Seconds a PUBACK may take, beyond the time a slow link needs for the bytes before it."""

PACKET_BYTES = 4 * 1024 * 1024
"""Bytes of the largest packet that the fleet's broker may send."""

SESSION_SECONDS = 86_400
"""Seconds for which the fleet's broker keeps the session of a disconnected gateway."""

TOPIC_ALIASES = 128
"""Topic aliases that the uplink sets, if the server allows as many."""


@dataclass(frozen=True, slots=True)
class UplinkSettings:
    """Where the outbox goes: to the broker at `url`, or by `destination`; `name` is one of several.

    URLs begin with mqtt://, mqtts://, ws:// or wss://.

    `client_id` defaults to `tidegate-<gateway_id>`. `username_file` and `password_file` hold a user
    name and a password alone, and are read for each connection; `ca_file` the certificates that
    TLS trusts in place of the system's. `tls_certificate` and `tls_key` (by default in the same
    file) say who the gateway is. With `plain` messages go up without numbers where the broker
    speaks MQTT 3.1.1 alone; `targets` are those of the rules, none if no rule has one.
    A message is rejected when `reject_after_ends` connections ended on it, and one that is refused
    for now after `retry_refused_for` seconds. Without `reports` nothing but messages goes up: no
    state, will, ledger or clock.
    With `identity` the publisher's client identifier and user name go up too. Without
    `batch` each message has a PUBLISH of its own.
    """

    gateway_id: str
    epoch: str
    version: str
    name: str = ""
    url: str | None = None
    destination: "Callable[[UplinkContext], Destination] | None" = None
    username: str | None = None
    username_file: Path | None = None
    password_file: Path | None = None
    ca_file: Path | None = None
    tls_certificate: Path | None = None
    tls_key: Path | None = None
    client_id: str | None = None
    prefix: str = "tidegate"
    identity: bool = False
    window: int = WINDOW
    puback_timeout: float = PUBACK_SECONDS
    session_expiry: int = SESSION_SECONDS
    topic_alias_maximum: int = TOPIC_ALIASES
    maximum_packet_size: int = PACKET_BYTES
    pacing: PacingLimits = NO_LIMITS
    batch: BatchLimits | None = None
    schedule: Schedule | None = None
    down: bool = False
    plain: bool = False
    targets: tuple[Target, ...] = ()
    topic_bounds: TopicBounds = MQTT_BOUNDS
    landing: LandingBounds = NO_BOUNDS
    reports: bool = True
    reject_after_ends: int = 3
    retry_refused_for: float = 21_600.0

    @property
    def fleet_client_id(self) -> str:
        """The client identifier at the fleet's broker."""
        return self.client_id or f"tidegate-{self.gateway_id}"

    def topic(self, suffix: str) -> str:
        """Return the fleet's topic of this gateway that ends with `suffix`."""
        return f"{self.prefix}/{self.gateway_id}/{suffix}"
