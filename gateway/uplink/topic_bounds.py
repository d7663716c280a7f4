"""The limits of topic names at the fleet's broker."""

from typing import NamedTuple


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
