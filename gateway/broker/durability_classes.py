"""Which durability class a client and a message have, as the configuration says."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from gateway.broker.client_pattern import client_matcher
from gateway.counters import Counters
from gateway.mqtt.topics import topic_matches
from gateway.session.durability_class import DurabilityClass

MAXIMUM_ENTRIES = 100
"""Most `[[durability]]` of a configuration; a topic that is not cached is compared with each."""

CACHED_TOPICS = 4_096
"""Topic names whose class is remembered; when full all are forgotten, which is counted."""

CACHED_LENGTH = 256
"""Characters of a topic name that is remembered; of longer ones the class is looked up again."""


@dataclass(frozen=True, slots=True)
class DurabilityEntry:
    """A class for the clients that `client` names, or for the topics that `topic_filter` matches.

    One of the two is given. `commit_within` is as in DurabilityClass.
    """

    commit_within: float | None
    client: str | None = None
    topic_filter: str | None = None


class DurabilityClasses:
    """The first entry that fits holds, then what the listener says, then `default`.

    A message is its publisher's: an entry fits it by its topic, or by the client that published it.
    """

    __slots__ = ("_cache", "_clients", "_counters", "_topics", "default")

    def __init__(
        self,
        entries: Iterable[DurabilityEntry],
        default: float | None,
        counters: Counters,
    ) -> None:
        self.default = DurabilityClass(default)
        self._counters = counters
        self._clients: list[tuple[Callable[[str], bool], DurabilityClass]] = []
        self._topics: list[tuple[str, DurabilityClass]] = []
        self._cache: dict[str, DurabilityClass] = {}
        for place, entry in enumerate(entries):
            found = DurabilityClass(entry.commit_within, place)
            if entry.client is not None:
                self._clients.append((client_matcher(entry.client), found))
            if entry.topic_filter is not None:
                self._topics.append((entry.topic_filter, found))

    def of_client(self, client_id: str, of_listener: DurabilityClass | None) -> DurabilityClass:
        """Return the class of what this client changes, and publishes where no topic says else."""
        for matches, found in self._clients:
            if matches(client_id):
                return found
        return self.default if of_listener is None else of_listener

    def commit_within(self, of_client: DurabilityClass, topic: str) -> float | None:
        """Return the seconds for a message that such a client publishes to `topic`."""
        if self._topics:
            of_topic = self._cache.get(topic) or self._look_up(topic)
            if of_topic.place < of_client.place:
                return of_topic.commit_within
        return of_client.commit_within

    def _look_up(self, topic: str) -> DurabilityClass:
        found = next((each for only, each in self._topics if topic_matches(only, topic)), None)
        found = found or self.default
        if len(topic) <= CACHED_LENGTH:
            if len(self._cache) >= CACHED_TOPICS:
                self._cache.clear()
                self._counters.add("tidegate/storage/classes_forgotten")
            self._cache[topic] = found
        return found
