"""Who looks at messages that are being delivered: the broker calls one function, or none."""

from gateway.broker.broker import Broker
from gateway.broker.state import Watch
from gateway.mqtt.publication import Publication


class Watchers:
    """Lets several look at every message; while none does, messages cost nothing more."""

    def __init__(self, broker: Broker) -> None:
        self._broker = broker
        self._watchers: list[Watch] = []

    def add(self, watch: Watch) -> None:
        """Call this with messages from now on; nothing if it is called already."""
        if watch not in self._watchers:
            self._watchers.append(watch)
            self._set()

    def discard(self, watch: Watch) -> None:
        """Call it no more."""
        if watch in self._watchers:
            self._watchers.remove(watch)
            self._set()

    def _set(self) -> None:
        alone = self._watchers[0] if len(self._watchers) == 1 else self._all
        self._broker.watch = alone if self._watchers else None

    def _all(self, publication: Publication, first: int, count: int) -> None:
        for watch in self._watchers:
            watch(publication, first, count)
