"""The target of a rule's messages: the fleet's topic, RETAIN and QoS; limits of topics there."""

import re
from collections.abc import Sequence
from typing import NamedTuple

from gateway.mqtt.topics import topic_matches
from gateway.settings.checks import TOPIC_PLACE
from gateway.settings.uplink import RuleSettings
from gateway.storage.outbox.row import OutboxRow

KNOWN_TOPICS = 4_096
"""Topics whose target is cached; when there are more, the cache is cleared."""

Address = tuple[bytes, bool, int]
"""A topic at the fleet's broker, whether messages keep their RETAIN flag, and the QoS."""


def fill(template: str, gateway_id: str, topic: str) -> str:
    """Return `template` with its placeholders replaced for a message on `topic`.

    `{gateway}` is the gateway id, `{topic}` the whole topic, `{2}` its second level and `{2+}` its
    levels from the second on. Levels that the topic does not have are empty.
    """
    levels = topic.split("/")

    def value(place: re.Match[str]) -> str:
        name, number, more = place.groups()
        if name is not None:
            return gateway_id if name == "gateway" else topic
        first = int(number) - 1
        return "/".join(levels[first:] if more else levels[first : first + 1])

    return TOPIC_PLACE.sub(value, template)


class Targets:
    """Finds the target of a row by its stream and topic: that of the first rule that has them.

    The configuration does not allow two targets for the same stream and topic.
    """

    def __init__(self, targets: Sequence[RuleSettings], gateway_id: str, prefix: str) -> None:
        self._targets = targets
        self._gateway_id = gateway_id
        self._prefix = prefix
        self._known: dict[tuple[str, str], Address] = {}

    def of(self, row: OutboxRow) -> Address:
        """Return the row's target."""
        key = (row.stream, row.message.topic)
        address = self._known.get(key)
        if address is None:
            if len(self._known) >= KNOWN_TOPICS:
                self._known.clear()
            address = self._known[key] = self._find(row)
        return address

    def _find(self, row: OutboxRow) -> Address:
        for each in self._targets:
            if each.stream == row.stream and topic_matches(each.topic, row.message.topic):
                topic = f"{self._prefix}{row.message.topic}"
                if each.target is not None:
                    topic = fill(each.target, self._gateway_id, row.message.topic)
                return topic.encode(), each.retain, each.qos
        # its rule was removed from the configuration meanwhile
        return f"{self._prefix}{row.message.topic}".encode(), False, 1


def overlap(first: str, second: str) -> bool:
    """Return whether there is a topic that both topic filters match."""
    return _overlap(first.split("/"), second.split("/"))


def _overlap(first: list[str], second: list[str]) -> bool:
    for number, (one, other) in enumerate(zip(first, second, strict=False)):
        if "#" in (one, other):
            return number > 0 or not _is_own(first[0], second[0])
        if one != other and "+" not in (one, other):
            return False
        if number == 0 and _is_own(one, other):
            return False
    longer = first if len(first) > len(second) else second
    shorter = min(len(first), len(second))
    return len(first) == len(second) or longer[shorter:] == ["#"]


def _is_own(one: str, other: str) -> bool:
    """Whether only one of two first levels begins with $, which wildcards do not match."""
    return (one[:1] == "$" and other in ("+", "#")) or (other[:1] == "$" and one in ("+", "#"))


class TopicBounds(NamedTuple):
    """The most bytes and levels of a topic name, None if only MQTT limits them.

    A broker does not announce these limits; some end the connection over a longer topic.
    """

    maximum_bytes: int
    maximum_levels: int | None

    def problem(self, topic: bytes) -> str:
        """Return why a message cannot be sent to `topic`, "" if it can."""
        if not topic:
            return "its topic at the fleet is empty"
        if len(topic) > self.maximum_bytes:
            return (
                f"its topic at the fleet has {len(topic):,} bytes, "
                f"and maximum_topic_bytes is {self.maximum_bytes:,}"
            )
        levels = self.maximum_levels
        if levels is not None and topic.count(b"/") >= levels:
            return (
                f"its topic at the fleet has {topic.count(b'/') + 1:,} levels, "
                f"and maximum_topic_levels is {levels:,}"
            )
        return ""
