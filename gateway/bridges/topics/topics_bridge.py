"""Messages of other programs on this broker, such as zigbee2mqtt or Tasmota, as readings."""

import asyncio
import re
from collections import deque
from dataclasses import dataclass
from functools import partial
from typing import Any

from gateway.bridges.kind import BridgeKind
from gateway.bridges.readings.name_template import NameTemplate, name_template
from gateway.bridges.readings.reading_map import ReadingMap, reading_map
from gateway.bridges.readings.written import json_of
from gateway.bridges.settings import BridgeSettings, key
from gateway.bridges.supervision.host import Host
from gateway.bridges.topics.presets import PRESETS, Preset
from gateway.mqtt.errors import MqttError
from gateway.mqtt.message import Message
from gateway.mqtt.reason_codes import ReasonCode
from gateway.mqtt.topics import check_topic_filter
from gateway.settings.checks import one_of, texts

NAMES = ("{node}", "{quantity}", "{instance}", "{channel}")

CHANNEL = re.compile(r"(?:[^:]*:)?([0-9]+)")
"""A level `switch:1` or `1`; others have no channel, and the first of several needs no instance."""


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
        if self._levels[0] in ("sensors", "+", "#") or self.topic_filter.startswith("$"):
            raise ValueError(f"{pattern}: readings themselves are on sensors/#; name another level")

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


ADDRESS = re.compile("(?:[0-9A-Fa-f]{2}:){5}[0-9A-Fa-f]{2}")
"""A node that is named by its address, which has no colons elsewhere."""

WAITING_MAX = 1_000
"""Messages that wait to be read; the oldest is dropped when full, and counted."""

PAYLOAD_MAX = 64 * 1024
"""Bytes of a payload; a larger one is counted and ignored."""


def patterns(value: object) -> tuple[str, ...]:
    """Accept topic patterns."""
    names = texts(value)
    for name in names:
        TopicPattern(name, names_node=False)
    return names


@dataclass(frozen=True, kw_only=True, slots=True)
class TopicsSettings(BridgeSettings):
    """Which topics are read."""

    preset: str | None = key(
        one_of(*PRESETS), "topics and names of " + ", ".join(f"`{each}`" for each in PRESETS), None
    )
    topics: tuple[str, ...] = key(
        patterns,
        "topics with a level `{node}` and optionally `{quantity}`, `{instance}` or "
        "`{channel}`, such as `my/{node}/state`",
        (),
    )
    node: str | None = key(
        name_template, "node of the messages, built from their fields: `{model}-{id}`", None
    )
    instance: str | None = key(
        name_template,
        "instance of the readings, built from their fields, such as `{channel}`",
        None,
    )

    def __post_init__(self) -> None:
        """Raise ValueError if nothing would be read."""
        if self.preset is None and not self.topics:
            raise ValueError("preset or topics must be given")
        if self.node is None and PRESETS.get(self.preset or "", Preset(())).node == "":
            for name in self.topics:
                TopicPattern(name)


class TopicsBridge:
    """Reads messages one after the other, outside the turn of the publishing client."""

    def __init__(self, settings: TopicsSettings, host: Host) -> None:
        self._host = host
        preset = PRESETS.get(settings.preset or "")
        names = (*(preset.topics if preset else ()), *settings.topics)
        fields: dict[str, Any] = dict(reading_map(preset.map).fields) if preset else {}
        host.map = ReadingMap({**fields, **settings.map.fields}, settings.map.strict)
        self._node = NameTemplate(settings.node or (preset.node if preset else ""))
        self._instance = NameTemplate(settings.instance or (preset.instance if preset else ""))
        self._waiting: deque[tuple[TopicPattern, Message]] = deque()
        self._arrived = asyncio.Event()
        for name in names:
            pattern = TopicPattern(name, names_node=False)
            host.listen(pattern.topic_filter, partial(self._on_message, pattern))

    async def run(self) -> None:
        """Read messages until cancelled."""
        self._host.working()
        while True:
            await self._arrived.wait()
            while self._waiting:
                self._read(*self._waiting.popleft())
            self._arrived.clear()

    def _on_message(self, pattern: TopicPattern, message: Message) -> ReasonCode:
        if message.topic.startswith("sensors/"):  # already a reading
            return ReasonCode.SUCCESS
        if len(message.payload) > PAYLOAD_MAX:
            self._host.count("too_large")
            return ReasonCode.SUCCESS
        if len(self._waiting) == WAITING_MAX:
            self._waiting.popleft()
            self._host.count("overflow")
        self._waiting.append((pattern, message))
        self._arrived.set()
        return ReasonCode.SUCCESS

    def _read(self, pattern: TopicPattern, message: Message) -> None:
        self._host.count("messages")
        named = pattern.find(message.topic)
        try:
            value = json_of(bytes(message.payload))
        except (ValueError, RecursionError):
            value = None
        if isinstance(value, dict):
            fields = value
        elif isinstance(value, bool | int | float):
            fields = {named["quantity"]: value}
        else:
            self._host.count("not_read")
            return
        node = self._node.fill(fields) or named.get("node", "")
        if not node:
            self._host.publisher.reject(f"a message on {message.topic} that names no node")
            return
        describing = self._node.fields | self._instance.fields
        self._host.read_fields(
            node.replace(":", "").lower() if ADDRESS.fullmatch(node) else node,
            {name: value for name, value in fields.items() if name not in describing},
            instance=self._instance.fill(fields) or named.get("instance", ""),
            source=named["source"] if "node" in named else "",
            lossy=True,
        )


KIND = BridgeKind(
    name="topics",
    summary="messages of other programs on this broker, as readings",
    settings=TopicsSettings,
    make=TopicsBridge,
    counters={
        "messages": "Messages read.",
        "not_read": "Messages that are no JSON object, number or boolean.",
        "overflow": "Messages dropped because too many waited.",
        "too_large": "Messages dropped because of their size.",
    },
    default_name=lambda settings: settings.preset or "topics",
)
