"""What bridges need from what the application joins them with, and how they report a fault."""

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
    """What a bridge needs is not there or was lost: a device, a host, an extra.

    Its text says which in a few words. It is tried again, and logged without a traceback.
    """


Publish = Callable[[Message], ReasonCode]
"""Takes a message into the broker; a code of 0x80 or above says that it was not taken."""

WhenOnDisk = Callable[[Callable[[], None]], None]
"""Runs the callback on the loop once everything gathered so far is committed."""

Receive = Callable[[Message], ReasonCode]
"""Takes a message from the broker; a code of 0x80 or above refuses it."""


Update = Callable[[str], Awaitable[str]]
"""Puts this version's node onto the board at a port; returns why that failed, or an empty text."""


async def cannot_update(port: str) -> str:
    """Return that nobody here does it."""
    return f"{port}: this gateway updates no nodes"


class NodeFrames(Protocol):
    """The last frames of each node, kept in the same transactions as what they carried."""

    def seen(self, node: str, boot: int, sequence: int) -> bool:
        """Return whether this frame was remembered before, also by an earlier run."""

    def remember(self, node: str, boot: int, sequence: int, within: float | None = 0.0) -> None:
        """Gather the frame for the transaction that holds what was published before.

        It begins at most `within` seconds later, None for the class `memory`.
        """


class PacketCounters(Protocol):
    """The last encryption counter of devices, kept in the same transactions as their readings."""

    def last(self, address: str, key: bytes) -> int:
        """Return the counter that was remembered last, also by an earlier run; -1 for none."""

    def remember(self, address: str, key: bytes, counter: int) -> None:
        """Gather the counter for the transaction that holds what is published next."""

    def forget(self, address: str) -> int:
        """Forget the counters of a device; return how many there were."""


class Bridge(Protocol):
    """Something that turns what sensors say into readings for as long as it runs."""

    async def run(self) -> None:
        """Work until cancelled.

        A BridgeError says that something is not there or was lost; it is run again soon. Any
        other exception is a fault, after which a new bridge is made, later each time.
        """


class Subscribe(Protocol):
    """Lets a bridge receive messages of the broker."""

    def __call__(self, client_id: str, topic_filter: str, receive: Receive) -> Callable[[], None]:
        """Hand matching messages to `receive`; return what ends that."""


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
    """The source of each series: a second one is noticed."""
    controls: dict[str, Control] = field(default_factory=dict)
    """What can be written, by the topic of its series."""
    gaps: dict[str, float] = field(default_factory=dict)
    """Seconds after which a series is said again whatever its value, as far as a bridge says so."""
    forgetters: list[Callable[[str], int]] = field(default_factory=list)
    """What forgets a node, and returns how much there was."""
    strangers: set[str] = field(default_factory=set)
    """Nodes that were heard in the air and that nobody has listed; the bridge bounds them."""
