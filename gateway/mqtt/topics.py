"""Topic names and topic filters: validity, limits and matching (section 4.7)."""

from gateway.mqtt.codec.fields import read_string
from gateway.mqtt.errors import MalformedPacket, ProtocolError
from gateway.mqtt.reason_codes import ReasonCode

TOPIC_LIMIT = 65_535
"""The most bytes of UTF-8 in a topic name or topic filter [MQTT-4.7.3-3]."""

_SHARED = "$share"
SHARED_PREFIX = f"{_SHARED}/"

QUEUE_PREFIX = "$queue/"
"""Followed by the name of a channel it is another name for what its consumers subscribe to."""

_SHOWN = 80  # characters of a refused topic that an error's text repeats


def check_topic_name(topic: str) -> None:
    """Raise ProtocolError with TOPIC_NAME_INVALID unless a message can be published to `topic`."""
    fault = _text_fault(topic)
    if not fault and ("+" in topic or "#" in topic):  # [MQTT-4.7.0-1]
        fault = "holds a wildcard"
    if fault:
        raise ProtocolError(f"topic name {topic[:_SHOWN]!r} {fault}", ReasonCode.TOPIC_NAME_INVALID)


def check_topic_filter(topic_filter: str) -> None:
    """Raise ProtocolError with TOPIC_FILTER_INVALID unless one can subscribe to `topic_filter`.

    A shared subscription's filter is given whole: `$share/<share name>/<topic filter>`.
    """
    fault = _text_fault(topic_filter)
    if fault:
        fault = f"topic filter {topic_filter[:_SHOWN]!r} {fault}"
    else:
        fault = _filter_fault(topic_filter)
    if fault:
        raise ProtocolError(fault, ReasonCode.TOPIC_FILTER_INVALID)


def read_topic_filter(buffer: bytes, position: int, end: int) -> tuple[str, int]:
    """Read a topic filter; raise MalformedPacket unless one can subscribe to it.

    The whole packet is malformed then: none of its filters takes effect [MQTT-4.13.1-1]. Its length
    and characters are checked as those of any string.
    """
    topic_filter, position = read_string(buffer, position, end, "topic filter")
    fault = _filter_fault(topic_filter)
    if fault:
        raise MalformedPacket(fault)
    return topic_filter, position


def split_shared(topic_filter: str) -> tuple[str | None, str]:
    """Return the share name and the topic filter after it; (None, `topic_filter`) if not shared.

    For a filter that `check_topic_filter` refuses either part may be empty.
    """
    if not topic_filter.startswith(SHARED_PREFIX):
        return None, topic_filter
    share_name, _, shared_filter = topic_filter[len(SHARED_PREFIX) :].partition("/")
    return share_name, shared_filter


def topic_matches(topic_filter: str, topic: str) -> bool:
    """Return whether `topic_filter` matches `topic`; both are valid, neither is shared."""
    if topic.startswith("$") and topic_filter.startswith(("+", "#")):  # [MQTT-4.7.2-1]
        return False
    levels = topic.split("/")
    filter_levels = topic_filter.split("/")
    for index, filter_level in enumerate(filter_levels):
        if filter_level == "#":  # and the parent of this level (section 4.7.1.2)
            return True
        if index == len(levels) or filter_level not in ("+", levels[index]):
            return False
    return len(filter_levels) == len(levels)


def _filter_fault(topic_filter: str) -> str:
    """Return the fault in the levels of a topic filter; empty if there is none."""
    share_name, levels = split_shared(topic_filter)
    parents, _, last = levels.rpartition("/")
    fault = ""
    if not topic_filter:  # [MQTT-4.7.3-1]
        fault = "is empty"
    elif share_name == "" or topic_filter == _SHARED:  # [MQTT-4.8.2-1]
        fault = "has no share name"
    elif share_name and ("+" in share_name or "#" in share_name):  # [MQTT-4.8.2-2]
        fault = "has a wildcard in its share name"
    elif not levels:  # [MQTT-4.8.2-2]
        fault = "has no topic filter behind its share name"
    elif "#" in parents or ("#" in last and last != "#"):
        fault = "has a # that is not its whole last level"  # [MQTT-4.7.1-1]
    elif "+" in levels and any("+" in level and level != "+" for level in levels.split("/")):
        fault = "has a + that is not a whole level"  # [MQTT-4.7.1-2]
    return f"topic filter {topic_filter[:_SHOWN]!r} {fault}" if fault else ""


def _text_fault(text: str) -> str:
    """Return the fault in the text of a topic that no packet brought; empty if there is none."""
    if not text:  # [MQTT-4.7.3-1]
        return "is empty"
    if "\0" in text:  # [MQTT-4.7.3-2]
        return "holds U+0000"
    try:
        size = len(text.encode())
    except UnicodeEncodeError:  # [MQTT-1.5.4-1]
        return "holds a surrogate, which UTF-8 has no bytes for"
    return f"has {size} bytes; at most {TOPIC_LIMIT}" if size > TOPIC_LIMIT else ""


class TopicLimits:
    """Bounds of topic names and topic filters: levels, and bytes of UTF-8."""

    __slots__ = ("_always_within", "maximum_length", "maximum_levels")

    def __init__(self, maximum_levels: int, maximum_length: int) -> None:
        self.change(maximum_levels, maximum_length)

    def change(self, maximum_levels: int, maximum_length: int) -> None:
        """Apply other bounds from now on."""
        self.maximum_levels = maximum_levels
        self.maximum_length = maximum_length
        # a shorter text cannot have too many levels, nor, at four bytes a character, too many bytes
        self._always_within = min(maximum_levels - 1, maximum_length // 4)

    def fault(self, topic: str) -> str:
        """Return which limit a topic name or filter exceeds; empty if none."""
        if len(topic) <= self._always_within:
            return ""
        levels = topic.count("/") + 1
        if levels > self.maximum_levels:
            return f"has {levels} levels; at most {self.maximum_levels}"
        size = len(topic.encode())
        return f"has {size} bytes; at most {self.maximum_length}" * (size > self.maximum_length)
