"""A topic in which levels are named, such as `tele/{node}/SENSOR`."""

import re

from gateway.mqtt.errors import MqttError
from gateway.mqtt.topics import check_topic_filter

NAMES = ("{node}", "{quantity}", "{instance}", "{channel}")

CHANNEL = re.compile(r"(?:[^:]*:)?([0-9]+)")
"""A level `switch:1` or `1`; others have no channel, and the first of several needs no instance."""


class TopicPattern:
    """Finds the node, the quantity and the instance in topics.

    `{channel}` is an instance by number. Raises ValueError for a pattern of no use; one without
    `{node}` is of use only where the `node` is made of the message.
    """

    def __init__(self, pattern: str, *, names_node: bool = True) -> None:
        self._levels = pattern.split("/")
        self.topic_filter = "/".join("+" if level in NAMES else level for level in self._levels)
        try:
            check_topic_filter(self.topic_filter)
        except MqttError as error:
            raise ValueError(f"{pattern}: {error.reason}") from None
        if "{" in self.topic_filter or "}" in self.topic_filter:
            raise ValueError(f"{pattern}: {', '.join(NAMES)} are known, as whole levels")
        if names_node and "{node}" not in self._levels:
            raise ValueError(f"{pattern}: a level must be {{node}}, or node must be given")
        if self._levels[0] in ("sensors", "+", "#") or self.topic_filter.startswith("$"):
            raise ValueError(f"{pattern}: readings themselves are on sensors/#; name another level")

    def find(self, topic: str) -> dict[str, str]:
        """Return the levels of a topic that have names; `source` is all but node and quantity."""
        levels = list(zip(self._levels, topic.split("/"), strict=False))
        found = {name.strip("{}"): level for name, level in levels if name in NAMES}
        channel = CHANNEL.fullmatch(found.pop("channel", ""))
        if channel is not None:
            found["instance"] = channel[1].lstrip("0")
        own = [level for name, level in levels if name not in ("{node}", "{quantity}")]
        found["source"] = "-".join(own)
        return found
