"""Observers of messages that are being delivered: the broker calls one of them, or all."""

from gateway.broker.broker import Broker
from gateway.broker.publishing.topic_memory import Watcher
from gateway.mqtt.publication import Publication


class Watchers(Watcher):
    """Lets several observe every message; without any, messages cost nothing more."""

    def __init__(self, broker: Broker) -> None:
        self._broker = broker
        self._watchers: list[Watcher] = []

    def add(self, watch: Watcher) -> None:
        """Add an observer, unless it is one already."""
        if watch not in self._watchers:
            self._watchers.append(watch)
            self._set()

    def discard(self, watch: Watcher) -> None:
        """Remove an observer."""
        if watch in self._watchers:
            self._watchers.remove(watch)
            self._set()

    def _set(self) -> None:
        alone = self._watchers[0] if len(self._watchers) == 1 else self
        self._broker.watch = alone if self._watchers else None

    def note(self, publication: Publication, first: int, count: int) -> None:
        """Call all observers."""
        for watch in self._watchers:
            watch.note(publication, first, count)
