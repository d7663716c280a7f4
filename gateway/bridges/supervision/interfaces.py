"""What bridges need from the application, and how they report a fault."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Protocol

from gateway.bridges.supervision.control import Control
from gateway.bridges.supervision.series_owners import SeriesLabels, SeriesOwners
from gateway.clock import Clock
from gateway.counters import Counters
from gateway.mqtt.message import Message
from gateway.mqtt.reason_codes import ReasonCode


class BridgeError(Exception):
    """Something that a bridge needs is missing or was lost: a device, a host, an extra.

    Its text names it in a few words. The bridge is retried, and no traceback is logged.
    """


Publish = Callable[[Message], ReasonCode]
"""Publishes a message in the broker; a code of 0x80 or above is a rejection."""

WhenOnDisk = Callable[[Callable[[], None]], None]
"""Runs the callback on the loop once everything pending so far is committed."""

Receive = Callable[[Message], ReasonCode]
"""Receives a message from the broker; a code of 0x80 or above rejects it."""


Update = Callable[[str], Awaitable[str]]
"""Installs this version's node on the board at a port; returns the reason of a failure, or an empty
text."""


async def cannot_update(port: str) -> str:
    """Return that this gateway cannot update nodes."""
    return f"{port}: this gateway updates no nodes"


class NodeFrames(Protocol):
    """The last frames of each node, stored in the same transactions as their readings."""

    def seen(self, node: str, boot: int, sequence: int) -> bool:
        """Return whether this frame was stored before, also by an earlier run."""

    def remember(self, node: str, boot: int, sequence: int, within: float | None = 0.0) -> None:
        """Add the frame to the transaction with what was published before.

        It begins at most `within` seconds later, None for the class `memory`.
        """


class PacketCounters(Protocol):
    """The last encryption counter of devices, stored in the same transactions as their readings."""

    def last(self, address: str, key: bytes) -> int:
        """Return the counter that was stored last, also by an earlier run; -1 for none."""

    def remember(self, address: str, key: bytes, counter: int) -> None:
        """Add the counter to the transaction with what is published next."""

    def forget(self, address: str) -> int:
        """Forget the counters of a device; return their number."""


class Bridge(Protocol):
    """Turns the data of sensors into readings for as long as it runs."""

    async def run(self) -> None:
        """Work until cancelled.

        A BridgeError means that something is missing or was lost; the bridge runs again soon. Any
        other exception is a fault: a new bridge is made, after a longer wait each time.
        """


class Subscribe(Protocol):
    """Lets a bridge receive messages from the broker."""

    def __call__(self, client_id: str, topic_filter: str, receive: Receive) -> Callable[[], None]:
        """Hand matching messages to `receive`; return the function that ends that."""


@dataclass(frozen=True, slots=True)
class Services:
    """The parts of the application that bridges use."""

    gateway_id: str
    publish: Publish
    subscribe: Subscribe
    retained: Callable[[str], list[tuple[str, bytes]]]
    """Returns topic and payload of the retained messages that match a topic filter."""
    when_on_disk: WhenOnDisk
    frames: NodeFrames
    packet_counters: PacketCounters
    series_labels: SeriesLabels
    alarm: Callable[[str, str], None]
    """Raises an alarm by name and text; an empty text ends it."""
    counters: Counters
    clock: Clock
    update: Update = cannot_update
    owners: SeriesOwners = field(default_factory=SeriesOwners)
    """The source of each series, so that a second one is noticed."""
    controls: dict[str, Control] = field(default_factory=dict)
    """The controls, by the topics of their series."""
    gaps: dict[str, float] = field(default_factory=dict)
    """Seconds after which a series is repeated even if unchanged, for bridges that declare it."""
    forgetters: list[Callable[[str], int]] = field(default_factory=list)
    """Forgets a node, and returns the number of forgotten entries."""
    strangers: set[str] = field(default_factory=set)
    """Nodes received by radio that are not configured; the bridge limits them."""
