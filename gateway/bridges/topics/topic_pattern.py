"""A topic in which levels are named, such as `tele/{node}/SENSOR`."""

from gateway.mqtt.errors import MqttError
from gateway.mqtt.topics import check_topic_filter

NAMES = ("{node}", "{quantity}")


class TopicPattern:
    """Finds the node and the quantity in topics; raises ValueError for a pattern of no use."""

    def __init__(self, pattern: str) -> None:
        self._levels = pattern.split("/")
        self.topic_filter = "/".join("+" if level in NAMES else level for level in self._levels)
        try:
            check_topic_filter(self.topic_filter)
        except MqttError as error:
            raise ValueError(f"{pattern}: {error.reason}") from None
        if "{" in self.topic_filter or "}" in self.topic_filter:
            raise ValueError(f"{pattern}: {{node}} and {{quantity}} are known, as whole levels")
        if "{node}" not in self._levels:
            raise ValueError(f"{pattern}: a level must be {{node}}")
        if self._levels[0] in ("sensors", "+", "#") or self.topic_filter.startswith("$"):
            raise ValueError(f"{pattern}: readings themselves are on sensors/#; name another level")

    def find(self, topic: str) -> dict[str, str]:
        """Return the levels of a topic that have names."""
        levels = zip(self._levels, topic.split("/"), strict=False)
        return {name.strip("{}"): level for name, level in levels if name in NAMES}
