"""The target of a rule's messages: the fleet's topic, RETAIN and QoS; limits of topics there."""

import re
from typing import NamedTuple

from gateway.mqtt.codec.fields import write_binary
from gateway.mqtt.codec.publish import publish_first_byte
from gateway.mqtt.topics import topic_matches
from gateway.settings.checks import TOPIC_PLACE
from gateway.settings.uplink import UplinkSettings

KNOWN_TOPICS = 1_024
"""Topics whose target is cached; when there are more, the cache is cleared."""

LONGEST_KNOWN = 1_024
"""Bytes of a topic at the fleet above which its target is not cached."""


class UnsendableTopicError(ValueError):
    """The topic of a row is invalid at the fleet; the text says why."""


class Target(NamedTuple):
    """Where a topic's messages go at the fleet's broker."""

    topic: bytes
    """In UTF-8, after its length."""

    first_byte: int
    """Of a PUBLISH with the target's QoS that is not retained."""

    retains: bool
    """Whether messages keep their RETAIN flag."""


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


class Targets(dict[tuple[str, str], Target]):
    """The target of each stream and topic: that of the first rule that has them.

    The configuration does not allow two targets for the same stream and topic. One that is not
    known is made by the settings' rules; without any, topics have only their prefix. Raises
    UnsendableTopicError if the topic exceeds the limits at the fleet.
    """

    def __init__(self, settings: UplinkSettings) -> None:
        super().__init__()
        self._rules = settings.targets
        self._gateway_id = settings.gateway_id
        self._prefix = settings.topic("data/")
        self._bounds = TopicBounds(settings.maximum_topic_bytes, settings.maximum_topic_levels)

    def __missing__(self, key: tuple[str, str]) -> Target:
        topic, retains, qos = self._find(*key)
        encoded = topic.encode()
        if problem := self._bounds.problem(encoded):
            raise UnsendableTopicError(problem)
        first_byte = publish_first_byte(qos, retain=False, dup=False)
        target = Target(write_binary(encoded), first_byte, retains)
        if len(self) >= KNOWN_TOPICS:
            self.clear()
        if len(encoded) <= LONGEST_KNOWN:
            self[key] = target
        return target

    def _find(self, stream: str, topic: str) -> tuple[str, bool, int]:
        for each in self._rules:
            if each.stream == stream and topic_matches(each.topic, topic):
                if each.target is not None:
                    return fill(each.target, self._gateway_id, topic), each.retain, each.qos
                return f"{self._prefix}{topic}", each.retain, each.qos
        # the default, or its rule was removed from the configuration meanwhile
        return f"{self._prefix}{topic}", False, 1


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
