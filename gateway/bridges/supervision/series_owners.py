"""Who publishes each series, so that a second source of one is noticed and kept apart."""

from dataclasses import dataclass

OWNERS_MAX = 10_000
"""Series of which it is known whose they are; in further ones a second source is not noticed."""

SILENT_LEAST = 60.0
"""Seconds of silence after which another source may go on with a series."""

SILENT_GAPS = 3.0
"""The same in gaps of the series, where they are long."""


@dataclass(slots=True)
class Owner:
    """The source of a series, when it was heard, and the gap before that."""

    bridge: str
    source: str
    heard: float
    gap: float = 0.0

    def is_live(self, now: float) -> bool:
        """Return whether the source may still be there."""
        return now - self.heard <= max(SILENT_LEAST, SILENT_GAPS * self.gap)


class SeriesOwners:
    """The source of each series, by its topic.

    Another source goes on with a series once the one before is silent or has lost what it reads: a
    node was plugged in elsewhere. One that came while the other was there stays a second one until
    the other's bridge has ended.
    """

    def __init__(self) -> None:
        self._owners: dict[str, Owner] = {}
        self._lost: set[str] = set()
        self._second: dict[str, set[tuple[str, str]]] = {}

    def other(self, topic: str, bridge: str, source: str, now: float) -> Owner | None:
        """Return the source whose series this is at `now`, None if it is the one that asks."""
        self._lost.discard(bridge)
        owner = self._owners.get(topic)
        if owner is None:
            if len(self._owners) < OWNERS_MAX:
                self._owners[topic] = Owner(bridge, source, now)
            return None
        if (owner.bridge, owner.source) == (bridge, source):
            owner.gap, owner.heard = now - owner.heard, now
            return None
        if (bridge, source) in self._second.get(topic, ()):
            return owner
        if owner.bridge not in self._lost and owner.is_live(now):
            self._second.setdefault(topic, set()).add((bridge, source))
            return owner
        self._owners[topic] = Owner(bridge, source, now)
        return None

    def lost(self, bridge: str) -> None:
        """Take that a bridge has lost what it reads: others may go on with its series."""
        self._lost.add(bridge)

    def ended(self, bridge: str) -> None:
        """Forget the series of a bridge."""
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
