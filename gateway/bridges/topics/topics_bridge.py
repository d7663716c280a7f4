"""Messages of other programs on this broker, such as zigbee2mqtt or Tasmota, as readings."""

import asyncio
from collections import deque
from dataclasses import dataclass
from functools import partial

from gateway.bridges.kind import BridgeKind
from gateway.bridges.settings import LISTED, BridgeSettings
from gateway.bridges.supervision.host import Host
from gateway.bridges.topics.mapping import (
    Mapping,
    MappingSettings,
    TopicPattern,
    republished_patterns,
)
from gateway.bridges.topics.presets import NO_PRESET, PRESETS
from gateway.mqtt.message import Message
from gateway.mqtt.reason_codes import ReasonCode
from gateway.settings.checks import texts
from gateway.settings.declaration import key

WAITING_MAX = 1_000
"""Messages that wait to be read; the oldest is dropped when full, and counted."""

PAYLOAD_MAX = 64 * 1024
"""Bytes of a payload; a larger one is counted and ignored."""


@dataclass(frozen=True, kw_only=True)
class TopicsSettings(BridgeSettings, MappingSettings):
    """Which topics are read."""

    topics: tuple[str, ...] = key(republished_patterns, MappingSettings.TOPICS, ())
    listed: tuple[str, ...] = key(texts, LISTED, ())


class TopicsBridge:
    """Reads messages one after the other, outside the turn of the publishing client."""

    def __init__(self, settings: TopicsSettings, host: Host) -> None:
        self._host = host
        self._mapping = Mapping(settings)
        self._by_radio = PRESETS.get(settings.preset or "", NO_PRESET).by_radio
        self._listed = settings.listed
        host.map = self._mapping.map
        self._waiting: deque[tuple[TopicPattern, Message]] = deque()
        self._arrived = asyncio.Event()
        for pattern in self._mapping.patterns:
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
        named = self._mapping.read(pattern, message.topic, bytes(message.payload))
        if named is None:
            self._host.count("not_read")
        elif not named.node:
            self._host.publisher.reject(f"a message on {message.topic} that names no node")
        else:
            if self._by_radio:
                self._host.receive_by_radio(named.node, self._listed)
            self._host.read_fields(
                named.node,
                named.fields,
                named.time,
                instance=named.instance,
                source=named.source,
                lossy=True,
            )


KIND = BridgeKind(
    name="topics",
    summary="messages of other programs on this broker, as readings",
    settings=TopicsSettings,
    make=TopicsBridge,
    counters={
        "messages": "Messages read.",
        "not_read": "Messages that are no JSON object, number, boolean or state such as `on`.",
        "overflow": "Messages dropped because too many waited.",
        "too_large": "Messages dropped because of their size.",
    },
    default_name=lambda settings: settings.preset or "topics",
)
