"""Which durability class a client and a message have, as the configuration says."""

from collections.abc import Callable, Iterable

from gateway.broker.client_pattern import client_matcher
from gateway.mqtt.topics import topic_matches
from gateway.session.durability_class import DurabilityClass
from gateway.settings.durability import commit_within
from gateway.settings.storage import DurabilityRule


class DurabilityClasses:
    """The first entry that fits holds, then what the listener says, then `default`.

    A message is its publisher's: an entry fits it by its topic, or by the client that published it.
    """

    __slots__ = ("_clients", "_topics", "default")

    def __init__(
        self,
        entries: Iterable[DurabilityRule],
        default: str,
    ) -> None:
        self.change(entries, default)

    def change(self, entries: Iterable[DurabilityRule], default: str) -> None:
        """Let other entries hold for clients that come, and for topics that are asked about."""
        self.default = DurabilityClass(commit_within(default))
        self._clients: list[tuple[Callable[[str], bool], DurabilityClass]] = []
        self._topics: list[tuple[str, DurabilityClass]] = []
        for place, entry in enumerate(entries):
            found = DurabilityClass(commit_within(entry.durability), place)
            if entry.client is not None:
                self._clients.append((client_matcher(entry.client), found))
            if entry.topic is not None:
                self._topics.append((entry.topic, found))

    def of_client(self, client_id: str, of_listener: DurabilityClass | None) -> DurabilityClass:
        """Return the class of what this client changes, and publishes where no topic says else."""
        for matches, found in self._clients:
            if matches(client_id):
                return found
        return self.default if of_listener is None else of_listener

    def of_topic(self, topic: str) -> DurabilityClass | None:
        """Return the class that the configuration names for a topic, None if it names none."""
        for topic_filter, found in self._topics:
            if topic_matches(topic_filter, topic):
                return found
        return None
