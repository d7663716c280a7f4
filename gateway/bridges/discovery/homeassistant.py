"""Announces every node with readings to Home Assistant, and removes those that are gone."""

import asyncio
import contextlib
import json
import logging
from collections import deque
from dataclasses import dataclass, field
from typing import NamedTuple

from gateway.bridges.discovery.device_payload import (
    STRANGER,
    Announced,
    component_of,
    event_payload,
    kind_of,
    slug,
    state_topic,
)
from gateway.bridges.kind import BridgeKind
from gateway.bridges.readings.reading import INSTANCES_RESERVED, Value
from gateway.bridges.readings.registry import Kind
from gateway.bridges.settings import BridgeSettings, key
from gateway.bridges.supervision.host import Host
from gateway.bridges.supervision.silence import Silence
from gateway.mqtt.message import Message
from gateway.mqtt.reason_codes import FAILURE, ReasonCode
from gateway.settings.checks import number, topic_prefix
from gateway.settings.quantities import seconds

NODES_MAX = 1_000
"""Nodes that are announced; further ones are counted and ignored."""

STRANGERS_MAX = 200
"""The part of them that is received by radio and not configured; others replace them when full."""

STRANGER_FORGET = 86_400
"""Seconds of silence after which such a node is removed."""

STRANGER_REPLACE = 3_600
"""Seconds of silence after which another one replaces it, where they are too many."""

WAITING_MAX = 10_000
"""Values queued for Home Assistant; the oldest is dropped when full, and counted."""

CHECK_EVERY = 1.0
"""Seconds for which changes are collected before devices are announced."""

OLD_MS = 300_000
"""Milliseconds after which a reading counts as delayed: Home Assistant would take it for
current."""

REPEAT_AFTER = (3.0, 30.0)
"""Seconds after an announcement by which Home Assistant has subscribed; then values are
repeated."""

HELD_MAX = 32
"""Events of a node that wait until Home Assistant has subscribed; the oldest is dropped when full,
and counted."""

EXPIRE_AFTER = (60, 300, 1_800, 7_200, 43_200, 172_800, 604_800)
"""Seconds after which a value expires; the first that is at least the allowed silence is used."""

WEEK = 604_800
"""Seconds."""

SENSOR_LEVELS = 3

COMMAND = "command"
"""Levels below a node that are not readings."""

logger = logging.getLogger(__name__)


@dataclass(frozen=True, kw_only=True, slots=True)
class HomeAssistantSettings(BridgeSettings):
    """Where Home Assistant looks, and when a node is gone."""

    prefix: str = key(topic_prefix, "discovery prefix", "homeassistant")
    offline_after: float = key(
        number(0, 1_000_000),
        "times its usual interval that a node may be silent before it is unavailable, and a "
        "series before it has no value; 0: no limit",
        10.0,
    )
    forget: int = key(seconds(1), "silence after which a node is removed", WEEK)


class Received(NamedTuple):
    """The part of a reading that is sent to Home Assistant."""

    series: str
    value: Value
    unit: str | None
    time: int | None
    quality: object
    payload: bytes

    @property
    def kind(self) -> Kind:
        """The kind of its value."""
        return kind_of(self.series.partition("/")[0], self.value)


@dataclass(slots=True)
class Series:
    """The state of a series: its gaps, and its last value to repeat."""

    silence: Silence
    shape: object = None
    """The inputs of its component."""
    payload: bytes = b""
    time: int = 0
    """The time of the newest value, milliseconds since 1970."""
    fresh: bool = False
    """Whether Home Assistant may not know it yet, or the last kind of its events."""


@dataclass(slots=True)
class Node:
    """An announced node, and when it was last heard."""

    announced: Announced
    silence: Silence
    received: float
    online: bool = False
    shown: bool | None = None
    changed: bool = field(default=True)
    series: dict[str, Series] = field(default_factory=dict)
    repeat_at: list[float] = field(default_factory=list)
    held: deque[tuple[str, bytes]] = field(default_factory=deque)
    """Events that wait until Home Assistant has subscribed."""


class HomeAssistant:
    """Keeps retained discovery payloads in step with the nodes on `sensors/<node>/<quantity>`.

    New values are published on separate topics: a reading that is an hour old is no state, and the
    last values are repeated when Home Assistant starts.
    """

    def __init__(self, settings: HomeAssistantSettings, host: Host) -> None:
        self._settings = settings
        self._host = host
        self._identity = f"tidegate_{slug(host.services.gateway_id)}"
        self._nodes: dict[str, Node] = {}
        self._controls: set[str] = set()
        self._waiting: deque[tuple[str, bytes]] = deque()
        self._arrived = asyncio.Event()
        self._recall()
        host.at_forget(self.forget)
        host.listen("sensors/+/+", self._on_reading)
        host.listen("sensors/+/+/+", self._on_reading)
        host.listen(f"{settings.prefix}/status", self._on_birth)

    async def run(self) -> None:
        """Announce, publish values and remove nodes until cancelled."""
        self._host.working()
        loop = asyncio.get_running_loop()
        due = loop.time()
        while True:
            if loop.time() >= due:
                self.check()
                due = loop.time() + CHECK_EVERY
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self._arrived.wait(), max(due - loop.time(), 0.0))
            self.publish_waiting()

    def publish_waiting(self) -> None:
        """Publish the queued values."""
        self._arrived.clear()
        for _ in range(len(self._waiting)):
            self._host.send(*self._waiting.popleft())

    def check(self) -> None:
        """Bring Home Assistant up to date."""
        now = self._now
        self._offer_controls()
        for name, node in list(self._nodes.items()):
            stranger = node.announced.stranger
            if now - node.received >= (STRANGER_FORGET if stranger else self._settings.forget):
                self.forget(name)
                continue
            if node.silence.check(now) is not None:
                node.online = False
            if node.changed and self._announce(node.announced):
                node.changed = False
                node.repeat_at = [now + delay for delay in REPEAT_AFTER]
            if node.online != node.shown and self._publish_availability(name, online=node.online):
                node.shown = node.online
            if not node.changed and node.repeat_at and now >= node.repeat_at[0]:
                node.repeat_at.pop(0)
                self._republish(name, node)
        self._host.show("devices", len(self._nodes))

    def forget(self, name: str) -> int:
        """Remove a node; return whether it was there."""
        if name not in self._nodes:
            return 0
        for topic in (self._config_topic(name), self._availability_topic(name)):
            self._host.send(topic, b"", retain=True)
        del self._nodes[name]
        self._controls = {each for each in self._controls if each.split("/")[1] != name}
        self._host.count("removed")
        logger.info("%s: %s is removed", self._host.title, name)
        return 1

    @property
    def _now(self) -> float:
        return self._host.services.clock.monotonic()

    def _id(self, name: str) -> str:
        return f"{self._identity}_{slug(name)}"

    def _config_topic(self, name: str) -> str:
        return f"{self._settings.prefix}/device/{self._id(name)}/config"

    def _availability_topic(self, name: str) -> str:
        return f"tidegate/availability/{self._id(name)}"

    def _on_reading(self, message: Message) -> ReasonCode:
        _, name, series = message.topic.split("/", SENSOR_LEVELS - 1)
        received = _read(series, bytes(message.payload))
        node = None if received is None else self._node(name)
        if node is None or received is None:
            return ReasonCode.SUCCESS
        node.received, node.online = self._now, True
        if isinstance(received.value, bool | int | float | str):
            self._learn(name, node, received)
            self._update(name, node, received)
        return ReasonCode.SUCCESS

    def _learn(self, name: str, node: Node, received: Received) -> None:
        """Announce the series if it is new, and learn when its values expire."""
        control = self._host.services.controls.get(f"sensors/{name}/{received.series}")
        known = node.series.get(received.series)
        event = received.value if received.kind is Kind.EVENT else None
        shape, new = (type(received.value), received.unit, control, event), False
        if known is None or known.shape != shape:
            component = component_of(
                self._id(name), name, received.series, received.value, received.unit, control
            )
            new = node.announced.learn(received.series, component)
            node.changed |= new
        if known is None:
            if slug(received.series) not in node.announced.components:
                self._host.count("not_announced")
                return
            known = node.series[received.series] = Series(Silence(self._settings.offline_after))
        known.shape = shape
        known.fresh |= new
        if received.kind in (
            Kind.SAMPLE,
            Kind.TOTAL,
        ):  # a state lasts, an event has no duration
            node.silence.received(self._now)
            known.silence.received(self._now)
            seconds = self._expiry(f"sensors/{name}/{received.series}", known.silence)
            if seconds:
                node.changed |= node.announced.expire(received.series, seconds)

    def _expiry(self, topic: str, silence: Silence) -> int:
        """Return the seconds after which a value expires, 0 while unknown."""
        factor, longest = self._settings.offline_after, self._host.services.gaps.get(topic)
        if not factor or (longest is None and not silence.is_known):
            return 0
        patience = max(factor * silence.usual, 3 * (longest or 0.0))
        return next((each for each in EXPIRE_AFTER if each >= patience), 0)

    def _update(self, name: str, node: Node, received: Received) -> None:
        """Publish a value, unless it is implausible, old, or older than the one before.

        Of a total that was reset, the first value is not published.
        """
        known = node.series.get(received.series)
        if known is None:
            return
        now = self._host.services.clock.wall_ms()
        time = now if received.time is None else received.time
        if now - time > OLD_MS or time < known.time <= now:
            self._host.count("old")
            return
        known.time = time
        if received.quality:
            return
        topic = state_topic(self._id(name), received.series)
        if received.kind is not Kind.EVENT:
            known.payload = received.payload
            self._queue(topic, received.payload)
        elif known.fresh:
            self._hold(node, topic, event_payload(received.value))
        else:
            self._queue(topic, event_payload(received.value))

    def _hold(self, node: Node, topic: str, payload: bytes) -> None:
        """Queue an event that Home Assistant would miss now."""
        if len(node.held) == HELD_MAX:
            node.held.popleft()
            self._host.count("overflow")
        node.held.append((topic, payload))

    def _queue(self, topic: str, payload: bytes) -> None:
        if len(self._waiting) == WAITING_MAX:
            self._waiting.popleft()
            self._host.count("overflow")
        self._waiting.append((topic, payload))
        self._arrived.set()

    def _republish(self, name: str, node: Node) -> None:
        for series, known in node.series.items():
            known.fresh = False
            if known.payload:
                self._queue(state_topic(self._id(name), series), known.payload)
        while node.held:
            self._queue(*node.held.popleft())

    def _offer_controls(self) -> None:
        """Announce controls that have no reading yet; a button never has one."""
        for topic, control in list(self._host.services.controls.items()):
            if topic in self._controls:
                continue
            _, name, series = topic.split("/", SENSOR_LEVELS - 1)
            node = self._node(name)
            if node is not None:
                self._controls.add(topic)
                component = component_of(self._id(name), name, series, None, None, control)
                node.changed |= node.announced.learn(series, component)
                node.received, node.online = self._now, True

    def _node(self, name: str) -> Node | None:
        node = self._nodes.get(name)
        stranger = name in self._host.services.strangers
        if node is not None:
            if node.announced.stranger != stranger:  # it was listed in between
                node.announced.stranger, node.changed = stranger, True
            return node
        if not self._has_capacity(stranger=stranger):
            self._host.count("not_announced")
            return None
        announced = Announced(name, stranger=stranger)
        silence = Silence(self._settings.offline_after)
        node = self._nodes[name] = Node(announced, silence, self._now)
        return node

    def _has_capacity(self, *, stranger: bool) -> bool:
        """Return whether one more can be announced.

        An unconfigured device is replaced by a configured one, and after an hour of silence by any.
        """
        strangers = [name for name, node in self._nodes.items() if node.announced.stranger]
        has_capacity = len(self._nodes) < NODES_MAX
        if has_capacity and not (stranger and len(strangers) >= STRANGERS_MAX):
            return True
        oldest = min(strangers, key=lambda name: self._nodes[name].received, default=None)
        if oldest is None:
            return False
        if stranger and self._now - self._nodes[oldest].received < STRANGER_REPLACE:
            return False
        self.forget(oldest)
        return True

    def _on_birth(self, message: Message) -> ReasonCode:
        """Home Assistant has started: repeat everything."""
        if bytes(message.payload) == b"online":
            for node in self._nodes.values():
                node.changed, node.shown = True, None
                for each in node.series.values():
                    each.fresh = True
        return ReasonCode.SUCCESS

    def _announce(self, announced: Announced) -> bool:
        name = announced.node
        payload = announced.payload(self._id(name), self._availability_topic(name))
        accepted = self._host.send(self._config_topic(name), payload, retain=True) < FAILURE
        if accepted:
            self._host.count("announced")
        return accepted

    def _publish_availability(self, name: str, *, online: bool) -> bool:
        word = b"online" if online else b"offline"
        return self._host.send(self._availability_topic(name), word, retain=True) < FAILURE

    def _recall(self) -> None:
        """Read from retained payloads what an earlier run announced, to remove that, too."""
        for topic, payload in self._host.services.retained(
            f"{self._settings.prefix}/device/+/config"
        ):
            announced = _announced_before(payload)
            if announced is None or self._config_topic(announced.node) != topic:
                continue  # another program's
            if len(self._nodes) < NODES_MAX:
                silence = Silence(self._settings.offline_after)
                self._nodes[announced.node] = Node(announced, silence, self._now, changed=False)


def _read(series: str, payload: bytes) -> Received | None:
    """Return the reading of a message, None if it is not a reading."""
    quantity, _, instance = series.partition("/")
    if quantity == COMMAND or instance in INSTANCES_RESERVED:
        return None
    try:
        reading = json.loads(payload.decode())
    except (ValueError, RecursionError):
        return None
    if not isinstance(reading, dict) or "value" not in reading:
        return None
    unit, time = reading.get("unit"), reading.get("time")
    return Received(
        series,
        reading["value"],
        unit if isinstance(unit, str) else None,
        time if isinstance(time, int) and not isinstance(time, bool) else None,
        reading.get("quality"),
        payload,
    )


def _announced_before(payload: bytes) -> Announced | None:
    try:
        found = json.loads(payload)
        if found["origin"]["name"] != "tidegate" or not isinstance(found["components"], dict):
            return None
        stranger = found["device"].get("model") == STRANGER
        return Announced(str(found["device"]["name"]), dict(found["components"]), stranger)
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        return None


KIND = BridgeKind(
    name="homeassistant",
    summary="announces every node to Home Assistant by MQTT discovery",
    settings=HomeAssistantSettings,
    make=HomeAssistant,
    counters={
        "announced": "Discovery payloads published.",
        "removed": "Nodes removed because they were silent for too long, or forgotten by a "
        "command.",
        "not_announced": "Readings of nodes that are not announced because there are too many.",
        "old": "Readings not published to Home Assistant because they were delayed.",
        "overflow": "Values dropped because too many waited.",
    },
    gauges={"devices": "Announced nodes."},
)
