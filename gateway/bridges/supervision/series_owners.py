"""Who publishes each series, so that a second source of one is noticed and kept apart."""

from dataclasses import dataclass
from typing import Protocol

OWNERS_MAX = 10_000
"""Series of which it is known whose they are; in further ones a second source is not noticed."""

SILENT_LEAST = 60.0
"""Seconds of silence after which another source may go on with a series."""

SILENT_GAPS = 3.0
"""The same in gaps of the series, where they are long."""


OWNER = "owner"
"""Stands for the bridge that owns a series among the labels that are remembered; no source is
called so."""


class SeriesLabels(Protocol):
    """The instances that were given to sources whose series had another source already."""

    def get(self, topic: str, source: str) -> str | None:
        """Return what the source was given, also by an earlier run; None for nothing."""

    def remember(self, topic: str, source: str, label: str) -> None:
        """Gather it for the transaction that holds what is published next."""

    def forget(self, node: str) -> int:
        """Forget what was given at a node; return how many there were."""


@dataclass(slots=True)
class Owner:
    """The source of a series, when it was heard, and the gap before that."""

    bridge: str
    source: str | None
    """None for one that is known from an earlier run and was not heard yet."""
    last_reading: float
    gap: float = 0.0

    def is_live(self, now: float) -> bool:
        """Return whether the source may still be there."""
        return now - self.last_reading <= max(SILENT_LEAST, SILENT_GAPS * self.gap)


class SeriesOwners:
    """The source of each series, by its topic.

    Another source goes on with a series once the one before is silent or has lost what it reads: a
    node was plugged in elsewhere. One that came while the other was there stays a second one until
    the other's bridge has ended. Whose a series is that two bridges have is remembered, so that
    after a restart it does not depend on which of them is heard first.
    """

    def __init__(self) -> None:
        self.configured: set[str] = set()
        """The bridges that there are; what another one had is free."""
        self._owners: dict[str, Owner] = {}
        self._lost: set[str] = set()
        self._second: dict[str, set[tuple[str, str]]] = {}

    def other(
        self, topic: str, bridge: str, source: str, now: float, labels: SeriesLabels
    ) -> Owner | None:
        """Return the source whose series this is at `now`, None if it is the one that asks."""
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
        """Return whose a series is that was not heard in this run."""
        before = labels.get(topic, OWNER)
        if before is None or before == bridge or before not in self.configured:
            return Owner(bridge, source, now)
        return Owner(before, None, now)

    def lost(self, bridge: str) -> None:
        """Take that a bridge has lost what it reads: others may go on with its series."""
        self._lost.add(bridge)

    def ended(self, bridge: str) -> None:
        """Forget the series of a bridge."""
        self.configured.discard(bridge)
        for topic in [topic for topic, owner in self._owners.items() if owner.bridge == bridge]:
            self._drop(topic)

    def forget(self, node: str) -> None:
        """Forget whose the series of a node are."""
        start = f"sensors/{node}/"
        for topic in [topic for topic in self._owners if topic.startswith(start)]:
            self._drop(topic)

    def _drop(self, topic: str) -> None:
        del self._owners[topic]
        self._second.pop(topic, None)
