"""What bridges need from the application, and how they report a fault."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Protocol

from gateway.bridges.supervision.control import Control
from gateway.clock import Clock
from gateway.counters import Counters
from gateway.mqtt.message import Message
from gateway.mqtt.reason_codes import ReasonCode

OWNERS_MAX = 10_000
"""Series whose source is known; in further ones a second source is not noticed."""

SILENT_LEAST = 60.0
"""Seconds of silence after which another source may take over a series."""

SILENT_GAPS = 3.0
"""The same in gaps of the series, for long gaps."""


OWNER = "owner"
"""Marks the owner of a series among the stored labels; no source has this name."""


class SeriesLabels(Protocol):
    """The instances of sources whose series already had another source."""

    def get(self, topic: str, source: str) -> str | None:
        """Return the stored instance of a source, also of an earlier run; None for none."""

    def remember(self, topic: str, source: str, label: str) -> None:
        """Add it to the transaction with what is published next."""

    def forget(self, node: str) -> int:
        """Forget the labels of a node; return their number."""


@dataclass(slots=True)
class Owner:
    """The source of a series, when it was last heard, and the gap before that."""

    bridge: str
    source: str | None
    """None for one of an earlier run that was not heard yet."""
    last_reading: float
    gap: float = 0.0

    def is_live(self, now: float) -> bool:
        """Return whether the source may still be active."""
        return now - self.last_reading <= max(SILENT_LEAST, SILENT_GAPS * self.gap)


class SeriesOwners:
    """The source of each series, by its topic.

    Another source takes over a series once the owner is silent or has lost its device: a node was
    plugged in elsewhere. A source that came while the owner was active stays second until the
    owner's bridge has ended. The owner of a series that two bridges have is stored, so that after a
    restart it does not depend on which one is heard first.
    """

    def __init__(self) -> None:
        self.configured: set[str] = set()
        """The running bridges; the series of others are free."""
        self._owners: dict[str, Owner] = {}
        self._lost: set[str] = set()
        self._second: dict[str, set[tuple[str, str]]] = {}

    def other(
        self, topic: str, bridge: str, source: str, now: float, labels: SeriesLabels
    ) -> Owner | None:
        """Return the owner of this series at `now`, None if it is the asking source."""
        self._lost.discard(bridge)
        owner = self._owners.get(topic)
        if owner is None:
            if len(self._owners) == OWNERS_MAX:
                return None
            owner = self._owners[topic] = self._first(topic, bridge, source, now, labels)
        if owner.bridge == bridge and owner.source is None:
            owner.source = source
        if (owner.bridge, owner.source) == (bridge, source):
            owner.gap, owner.last_reading = now - owner.last_reading, now
            return None
        if (bridge, source) in self._second.get(topic, ()):
            return owner
        if owner.bridge not in self._lost and owner.is_live(now):
            self._second.setdefault(topic, set()).add((bridge, source))
            if owner.bridge != bridge and labels.get(topic, OWNER) != owner.bridge:
                labels.remember(topic, OWNER, owner.bridge)
            return owner
        self._owners[topic] = Owner(bridge, source, now)
        if labels.get(topic, OWNER) is not None:
            labels.remember(topic, OWNER, bridge)
        return None

    def _first(
        self, topic: str, bridge: str, source: str, now: float, labels: SeriesLabels
    ) -> Owner:
        """Return the stored owner of a series that was not heard in this run."""
        before = labels.get(topic, OWNER)
        if before is None or before == bridge or before not in self.configured:
            return Owner(bridge, source, now)
        return Owner(before, None, now)

    def lost(self, bridge: str) -> None:
        """Note that a bridge has lost its device: others may take over its series."""
        self._lost.add(bridge)

    def ended(self, bridge: str) -> None:
        """Forget the series of a bridge."""
        self.configured.discard(bridge)
        for topic in [topic for topic, owner in self._owners.items() if owner.bridge == bridge]:
            self._drop(topic)

    def forget(self, node: str) -> None:
        """Forget the owners of a node's series."""
        start = f"sensors/{node}/"
        for topic in [topic for topic in self._owners if topic.startswith(start)]:
            self._drop(topic)

    def _drop(self, topic: str) -> None:
        del self._owners[topic]
        self._second.pop(topic, None)


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
