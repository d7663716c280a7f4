"""How messages of other programs become readings: their topics, and the names in their payloads.

The fleet's pipeline reads payloads by the same declarations as the bridge.
"""

import re
from dataclasses import dataclass
from typing import ClassVar, NamedTuple

from gateway.bridges.readings.event_time import time_of
from gateway.bridges.readings.name_template import NameTemplate, at, name_template, without_colons
from gateway.bridges.readings.reading_map import NO_MAP, ReadingMap, reading_map
from gateway.bridges.readings.written import (
    json_of,
    number_or_text,
    number_with_unit,
    text_of,
)
from gateway.bridges.topics.presets import NO_PRESET, PRESETS
from gateway.mqtt.errors import MqttError
from gateway.mqtt.topics import check_topic_filter
from gateway.settings.checks import one_of, text, texts
from gateway.settings.declaration import check, key

NAMES = ("{node}", "{quantity}", "{instance}", "{channel}")

CHANNEL = re.compile(r"(?:[^:]*:)?([0-9]+)")
"""A level `switch:1` or `1`; others have no channel, and the first of several needs no instance."""

STATES = {b"on": True, b"open": True, b"off": False, b"close": False, b"closed": False}
"""Words that programs publish as the state of a switch, a contact or a detector."""


class TopicPattern:
    """Finds the node, the quantity and the instance in topics.

    `{channel}` is an instance by number. Raises ValueError for an unusable pattern; one without
    `{node}` is usable only where the `node` is made of the message.
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

    def find(self, topic: str) -> dict[str, str]:
        """Return the named levels of a topic; `source` is all but node and quantity.

        `quantity` is the last level with a fixed name if the pattern names none.
        """
        levels = list(zip(self._levels, topic.split("/"), strict=False))
        found = {name.strip("{}"): level for name, level in levels if name in NAMES}
        channel = CHANNEL.fullmatch(found.pop("channel", ""))
        if channel is not None:
            found["instance"] = channel[1].lstrip("0")
        own = [level for name, level in levels if name not in ("{node}", "{quantity}")]
        found["source"] = "-".join(own)
        fixed = [level for name, level in levels[1:] if name not in (*NAMES, "+", "#")]
        found.setdefault("quantity", (fixed or levels[-1])[-1])
        return found


@check("list of texts", type="array", items={"type": "string", "minLength": 1})
def patterns(value: object) -> tuple[str, ...]:
    """Accept topic patterns."""
    names = texts(value)
    for name in names:
        TopicPattern(name, names_node=False)
    return names


@check("list of texts", type="array", items={"type": "string", "minLength": 1})
def republished_patterns(value: object) -> tuple[str, ...]:
    """Accept topic patterns that leave out the topics on which readings are published."""
    names = patterns(value)
    for name in names:
        if name.partition("/")[0] in ("sensors", "+", "#") or name.startswith("$"):
            raise ValueError(f"{name}: readings themselves are on sensors/#; name another level")
    return names


@dataclass(frozen=True, kw_only=True)
class MappingSettings:
    """Which topics are read, and what the names in their payloads mean."""

    TOPICS: ClassVar[str] = (
        "topics with a level `{node}` and optionally `{quantity}`, `{instance}` or "
        "`{channel}`, such as `my/{node}/state`"
    )
    preset: str | None = key(one_of(*PRESETS), "whose topics and names", None)
    topics: tuple[str, ...] = key(patterns, TOPICS, ())
    node: str | None = key(name_template, "node, built from fields: `{model}-{id}`", None)
    instance: str | None = key(
        name_template,
        "instance, built from fields, such as `{channel}`",
        None,
    )
    within: str | None = key(
        text, "path of the object with the readings, such as `uplink_message.payload`", None
    )
    time: str | None = key(text, "path of the field with their time, such as `received_at`", None)
    map: ReadingMap = key(
        reading_map,
        "[meanings of names](#names-of-values), beside the known ones",
        NO_MAP,
        shown="-",
    )

    def __post_init__(self) -> None:
        """Raise ValueError if nothing would be read."""
        if self.preset is None and not self.topics:
            raise ValueError("preset or topics must be given")
        if self.node is None and PRESETS.get(self.preset or "", NO_PRESET).node == "":
            for name in self.topics:
                TopicPattern(name)


class Named(NamedTuple):
    """What a message says: named values, and of which node and instance they are.

    `node` is empty if the message names none. `time` is in milliseconds since 1970, None without
    one. `source` distinguishes topics with values of one node.
    """

    node: str
    fields: dict[str, object]
    instance: str
    source: str
    time: int | None


class Mapping:
    """Reads messages by settings and their preset."""

    def __init__(self, settings: MappingSettings) -> None:
        preset = PRESETS.get(settings.preset or "", NO_PRESET)
        self.map = preset.reading_map(settings.map)
        names = (*preset.topics, *settings.topics)
        self.patterns = tuple(TopicPattern(name, names_node=False) for name in names)
        self._node = NameTemplate(settings.node or preset.node)
        self._instance = NameTemplate(settings.instance or preset.instance)
        self._within = settings.within or preset.within
        self._time = settings.time or preset.time

    def read(self, pattern: TopicPattern, topic: str, payload: bytes) -> Named | None:
        """Return what a message says; None if it is no object, number, boolean or state."""
        named = pattern.find(topic)
        value = _value_of(payload)
        if isinstance(value, str):
            value = _number_of(value)
        if isinstance(value, bool | int | float):
            value = {named["quantity"]: value}
        elif isinstance(value, tuple):
            value = {named["quantity"]: {"value": value[0], "unit": value[1]}}
        if not isinstance(value, dict):
            return None
        return Named(
            self._node.fill(value) or without_colons(named.get("node", "")),
            self._values(value),
            self._instance.fill(value) or named.get("instance", ""),
            named["source"] if "node" in named else "",
            time_of(at(value, self._time)) if self._time else None,
        )

    def _values(self, value: dict[str, object]) -> dict[str, object]:
        """Return the fields that are readings, of a message without `within` those of the map."""
        describing = self._node.fields | self._instance.fields | {self._time}
        inner = at(value, self._within) if self._within else value
        if not isinstance(inner, dict):
            inner = {name: each for name, each in value.items() if name in self.map.fields}
        return {name: each for name, each in inner.items() if name not in describing}


def _value_of(payload: bytes) -> object:
    """Return what a payload says in JSON, by a word such as `on` or as text; None for noise."""
    word = STATES.get(payload.strip().lower())
    if word is not None:
        return word
    try:
        return json_of(payload)
    except (ValueError, RecursionError):
        pass
    try:
        return text_of(payload)
    except ValueError:
        return None


def _number_of(text: str) -> float | tuple[float, str] | None:
    """Return the number in a text, with its unit if it has one; None for another text."""
    number = number_or_text(text.strip())
    return number_with_unit(text.strip()) if isinstance(number, str) else number
