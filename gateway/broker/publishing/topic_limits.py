"""How deep and how long topics may be, within what the specification allows."""


class TopicLimits:
    """Bounds of topic names and topic filters: levels, and bytes of UTF-8."""

    __slots__ = ("_always_within", "maximum_length", "maximum_levels")

    def __init__(self, maximum_levels: int, maximum_length: int) -> None:
        self.maximum_levels = maximum_levels
        self.maximum_length = maximum_length
        # characters that cannot be too many levels, nor, at four bytes each, too many bytes
        self._always_within = min(maximum_levels - 1, maximum_length // 4)

    def fault(self, topic: str) -> str:
        """Return what a topic name or filter has too much of; empty if it is within the limits."""
        if len(topic) <= self._always_within:
            return ""
        levels = topic.count("/") + 1
        if levels > self.maximum_levels:
            return f"has {levels} levels; at most {self.maximum_levels}"
        size = len(topic.encode())
        return f"has {size} bytes; at most {self.maximum_length}" * (size > self.maximum_length)
