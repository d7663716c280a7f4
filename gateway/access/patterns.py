"""The patterns of an ACL file, of which few can match a topic, whoever the client is."""

from collections.abc import Iterable

from gateway.access.rule import NAMES, Rule, rights
from gateway.mqtt.topics import topic_matches


class Patterns:
    """Patterns, and what they say about the topic that was asked about last.

    A message may be for thousands of clients, each of which has rights of its own: what is the same
    for all of them is found once. `found` are the patterns that match the topic for some client;
    `granted` is the sum of rights that they give, None if that depends on the client.
    """

    __slots__ = ("_rules", "_topic", "found", "granted")

    def __init__(self, rules: Iterable[Rule]) -> None:
        self._rules = [(rule, _widest(rule.topic_filter)) for rule in rules]
        self._topic: str | None = None
        self.found: list[Rule] = []
        self.granted: int | None = 0

    def __len__(self) -> int:
        return len(self._rules)

    def all(self) -> list[Rule]:
        """Return all of them."""
        return [rule for rule, _ in self._rules]

    def look_at(self, topic: str) -> None:
        """Find what is to be said about a topic."""
        if topic == self._topic:
            return
        self._topic = topic
        self.found = [
            rule for rule, widest in self._rules if not widest or topic_matches(widest, topic)
        ]
        named = any(NAMES.search(rule.topic_filter) for rule in self.found)
        self.granted = None if named else rights(self.found, topic)[0]


NO_PATTERNS = Patterns(())


def _widest(topic_filter: str) -> str:
    """Return a topic filter that matches what the pattern may match, "" if that may be any topic.

    A name may hold a `/`.
    """
    name = NAMES.search(topic_filter)
    if name is None:
        return topic_filter
    parents, _, _ = topic_filter[: name.start()].rpartition("/")
    return f"{parents}/#" if parents else ""
