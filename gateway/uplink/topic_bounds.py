"""What the fleet's broker takes as a topic name."""

from typing import NamedTuple

LONGEST_TOPIC = 65_535
"""Bytes of a topic name (MQTT 5, section 1.5.4)."""


class TopicBounds(NamedTuple):
    """The most bytes of a topic name, and the most levels, None where MQTT alone bounds them.

    A broker does not tell these bounds; some end the connection over a longer topic.
    """

    maximum_bytes: int = LONGEST_TOPIC
    maximum_levels: int | None = None

    def problem(self, topic: bytes) -> str:
        """Return why a message cannot go to `topic`, "" if it can."""
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


MQTT_BOUNDS = TopicBounds()
