"""Announces to Home Assistant every node that has readings, and takes away those that are gone."""

import asyncio
import json
import logging
from dataclasses import dataclass, field

from gateway.bridges.discovery.device_payload import Announced, slug
from gateway.bridges.kind import BridgeKind
from gateway.bridges.readings.reading import INSTANCES_RESERVED
from gateway.bridges.settings import BridgeSettings, key
from gateway.bridges.supervision.host import Host
from gateway.bridges.supervision.silence import Silence
from gateway.config.checks import number, topic_prefix
from gateway.config.quantities import duration_from
from gateway.mqtt.message import Message
from gateway.mqtt.reason_codes import FAILURE, ReasonCode

NODES_MAX = 1_000
"""Nodes that are announced; further ones are counted and left out."""

LOOK_EVERY = 1.0
"""Seconds in which changes are gathered before devices are announced."""

WEEK = 604_800
"""Seconds."""

SENSOR_LEVELS = 3

COMMAND = "command"
"""Below a node, what is no reading."""

logger = logging.getLogger(__name__)


@dataclass(frozen=True, kw_only=True, slots=True)
class HomeAssistantSettings(BridgeSettings):
    """Where Home Assistant looks, and when a node is gone."""

    prefix: str = key(topic_prefix, "Home Assistant's discovery prefix", "homeassistant")
    offline_after: float = key(
        number(0, 1_000_000),
        "times its usual gap a node may be silent before it is unavailable",
        10.0,
    )
    forget: int = key(
        duration_from(1), 'silence after which a node is taken away, such as `"7d"`', WEEK
    )


@dataclass(slots=True)
class Node:
    """A node that is announced, with when it was heard."""

    announced: Announced
    silence: Silence
    heard: float
    online: bool = False
    shown: bool | None = None
    changed: bool = field(default=True)


class HomeAssistant:
    """Keeps retained discovery payloads in step with the nodes on `sensors/<node>/<quantity>`."""

    def __init__(self, settings: HomeAssistantSettings, host: Host) -> None:
        self._settings = settings
        self._host = host
        self._identity = f"tidegate_{slug(host.services.gateway_id)}"
        self._nodes: dict[str, Node] = {}
        self._recall()
        host.listen("sensors/+/+", self._hear)
        host.listen("sensors/+/+/+", self._hear)
        host.listen(f"{settings.prefix}/status", self._hear_birth)

    async def run(self) -> None:
        """Announce and take away until cancelled."""
        self._host.working()
        while True:
            self.look()
            await asyncio.sleep(LOOK_EVERY)

    def look(self) -> None:
        """Bring Home Assistant up to date."""
        now = self._now
        for name, node in list(self._nodes.items()):
            if now - node.heard >= self._settings.forget:
                self._take_away(name)
                continue
            if node.silence.look(now) is not None:
                node.online = False
            if node.changed:
                node.changed = not self._announce(node.announced)
            if node.online != node.shown and self._say_online(name, online=node.online):
                node.shown = node.online
        self._host.show("devices", len(self._nodes))

    @property
    def _now(self) -> float:
        return self._host.services.clock.monotonic()

    def _id(self, name: str) -> str:
        return f"{self._identity}_{slug(name)}"

    def _config_topic(self, name: str) -> str:
        return f"{self._settings.prefix}/device/{self._id(name)}/config"

    def _availability_topic(self, name: str) -> str:
        return f"tidegate/availability/{self._id(name)}"

    def _hear(self, message: Message) -> ReasonCode:
        _, name, series = message.topic.split("/", SENSOR_LEVELS - 1)
        quantity, _, instance = series.partition("/")
        if quantity == COMMAND or instance in INSTANCES_RESERVED:
            return ReasonCode.SUCCESS
        try:
            reading = json.loads(bytes(message.payload).decode())
        except (ValueError, RecursionError):
            return ReasonCode.SUCCESS
        if not isinstance(reading, dict) or "value" not in reading:
            return ReasonCode.SUCCESS
        node = self._node(name)
        if node is not None:
            value, unit = reading["value"], reading.get("unit")
            if isinstance(value, bool | int | float | str):
                shown = unit if isinstance(unit, str) else None
                node.changed |= node.announced.learn(self._id(name), series, value, shown)
            node.heard = self._now
            node.silence.heard(node.heard)
            node.online = True
        return ReasonCode.SUCCESS

    def _node(self, name: str) -> Node | None:
        node = self._nodes.get(name)
        if node is None:
            if len(self._nodes) >= NODES_MAX:
                self._host.count("left_out")
                return None
            silence = Silence(self._settings.offline_after)
            node = self._nodes[name] = Node(Announced(name), silence, self._now)
        return node

    def _hear_birth(self, message: Message) -> ReasonCode:
        """Home Assistant has started: it is told everything again."""
        if bytes(message.payload) == b"online":
            for node in self._nodes.values():
                node.changed, node.shown = True, None
        return ReasonCode.SUCCESS

    def _announce(self, announced: Announced) -> bool:
        name = announced.node
        payload = announced.payload(self._id(name), self._availability_topic(name))
        taken = self._host.send(self._config_topic(name), payload, retain=True) < FAILURE
        if taken:
            self._host.count("announced")
        return taken

    def _say_online(self, name: str, *, online: bool) -> bool:
        word = b"online" if online else b"offline"
        return self._host.send(self._availability_topic(name), word, retain=True) < FAILURE

    def _take_away(self, name: str) -> None:
        for topic in (self._config_topic(name), self._availability_topic(name)):
            self._host.send(topic, b"", retain=True)
        del self._nodes[name]
        self._host.count("taken_away")
        logger.info("%s: %s is gone and taken away", self._host.title, name)

    def _recall(self) -> None:
        """Learn from retained payloads what an earlier run announced, so that it can go, too."""
        for topic, payload in self._host.services.retained(
            f"{self._settings.prefix}/device/+/config"
        ):
            announced = _announced_before(payload)
            if announced is None or self._config_topic(announced.node) != topic:
                continue  # another program's
            if len(self._nodes) < NODES_MAX:
                silence = Silence(self._settings.offline_after)
                self._nodes[announced.node] = Node(announced, silence, self._now, changed=False)


def _announced_before(payload: bytes) -> Announced | None:
    try:
        told = json.loads(payload)
        if told["origin"]["name"] != "tidegate" or not isinstance(told["components"], dict):
            return None
        return Announced(str(told["device"]["name"]), dict(told["components"]))
    except (ValueError, KeyError, TypeError, RecursionError):
        return None


KIND = BridgeKind(
    name="homeassistant",
    summary="announces every node to Home Assistant by MQTT discovery",
    settings=HomeAssistantSettings,
    make=HomeAssistant,
    counters={
        "announced": "Discovery payloads published.",
        "taken_away": "Nodes taken away because they were silent for too long.",
        "left_out": "Readings of nodes that are not announced because there are too many.",
    },
    gauges={"devices": "Nodes that are announced."},
)
