"""Which source publishes each series, so that a second one is noticed and kept apart."""

from dataclasses import dataclass
from typing import Protocol

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
