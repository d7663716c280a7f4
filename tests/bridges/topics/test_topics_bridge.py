"""Messages of other programs as readings, by presets and by patterns of the configuration."""

import asyncio
import contextlib
from collections.abc import AsyncIterator
from typing import Any

import pytest

from gateway.bridges.readings.reading_map import reading_map
from gateway.bridges.supervision.supervisor import Supervisor
from gateway.bridges.topics.mapping import TopicPattern, republished_patterns
from gateway.bridges.topics.topics_bridge import KIND, PAYLOAD_MAX, WAITING_MAX, TopicsSettings
from gateway.config.bridges import BridgeConfig
from tests.support.disk.storage import until
from tests.support.nodes.bridges import Gateway


@contextlib.asynccontextmanager
async def bridging(gateway: Gateway, **settings: Any) -> AsyncIterator[None]:
    supervisor = Supervisor(gateway.services)
    await supervisor.apply([BridgeConfig(KIND, "t", TopicsSettings(**settings))])
    await until(lambda: gateway.figure("topics/t/state") == "open")
    try:
        yield
    finally:
        await supervisor.close()


ZIGBEE = """{"temperature": 21.4, "battery": 97, "contact": true, "linkquality": 120,
    "update": {"state": "idle"}}"""
TASMOTA = """{"Time": "2026-11-23T10:00:00", "AM2301": {"Temperature": 20.1, "Humidity": 55.0},
    "TempUnit": "C", "ENERGY": {"Total": 3.1, "Power": 60, "Voltage": 231, "Today": 1}}"""

MESSAGES = [
    (
        ("zigbee2mqtt", "zigbee2mqtt/kitchen", ZIGBEE),
        {
            "kitchen/temperature": (21.4, "°C"),
            "kitchen/battery": (97, "%"),
            "kitchen/opening": (False, None),
            "kitchen/link_quality": (120, None),
        },
    ),
    (
        ("tasmota", "tele/plug1/SENSOR", TASMOTA),
        {
            "plug1/temperature": (20.1, "°C"),
            "plug1/humidity": (55.0, "%"),
            "plug1/energy": (3.1, "kWh"),
            "plug1/power": (60, "W"),
            "plug1/voltage": (231, "V"),
        },
    ),
    (
        ("shelly", "shellyplusht-a1/status/temperature:0", '{"id":0,"tC":19.5,"tF":67.1}'),
        {"shellyplusht-a1/temperature": (19.5, "°C")},
    ),
    (
        ("shelly", "shellies/ht-b2/sensor/temperature", "18.25"),
        {"ht-b2/temperature": (18.25, "°C")},
    ),
    (("shelly", "shellies/plug-c3/relay/0/energy", "60000"), {"plug-c3/energy": (1.0, "kWh")}),
]


@pytest.mark.parametrize(("message", "readings"), MESSAGES)
async def test_presets(message: tuple[str, str, str], readings: dict[str, Any]) -> None:
    preset, topic, payload = message
    gateway = Gateway.make()
    async with bridging(gateway, preset=preset):
        gateway.subscriptions.publish(topic, payload.encode())
        await until(lambda: len(gateway.broker.messages) >= len(readings))
    assert {
        topic.removeprefix("sensors/"): (fields["value"], fields.get("unit"))
        for topic, fields in gateway.broker.readings
    } == readings


async def test_patterns_maps_and_what_is_no_reading() -> None:
    gateway = Gateway.make()
    settings = {"topics": ("my/{node}/{quantity}",), "map": reading_map({"t": "temperature"})}
    async with bridging(gateway, **settings):
        for payload in (
            b"21",
            b'{"t":22}',
            b"text",
            b"\xff",
            b"[" * 9000,
            b"null",
            b"9" * (PAYLOAD_MAX + 1),
        ):
            gateway.subscriptions.publish("my/n1/hum", payload)
        gateway.subscriptions.publish("my/n/1", b"1")
        await until(lambda: gateway.counters.count("tidegate/topics/messages") == 7)
    assert [(topic, fields["value"]) for topic, fields in gateway.broker.readings] == [
        ("sensors/n1/humidity", 21),
        ("sensors/n1/temperature", 22),
        ("sensors/n/1", 1),
    ]
    assert gateway.figure("topics/not_read") == 4
    assert gateway.figure("topics/too_large") == 1


async def test_a_flood_is_bounded_and_readings_do_not_come_round() -> None:
    gateway = Gateway.make()
    async with bridging(gateway, topics=("{node}/+/{quantity}",)):
        for _ in range(WAITING_MAX + 5):
            gateway.subscriptions.publish("a/b/temp", b"1")
        gateway.subscriptions.publish("sensors/b/temp", b"1")
        await until(lambda: len(gateway.broker.messages) == WAITING_MAX)
        await asyncio.sleep(0)
    assert gateway.figure("topics/overflow") == 5
    assert len(gateway.broker.messages) == WAITING_MAX


@pytest.mark.parametrize(
    "pattern",
    ["a/b", "a/{node}x", "sensors/{node}/x", "a/#/{node}", "+/{node}", "a/{where}/{node}"],
)
def test_patterns_that_cannot_be_used(pattern: str) -> None:
    with pytest.raises(ValueError, match="^" + pattern.replace("+", r"\+").replace("{", r"\{")):
        TopicPattern(republished_patterns([pattern])[0])
