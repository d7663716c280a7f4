"""Messages of other programs, as their documentation and issues show them, to series."""

import asyncio
import contextlib
import json

import pytest

from gateway.bridges.supervision.host import UNLISTED_MAX
from gateway.bridges.topics.topics_bridge import TopicsBridge, TopicsSettings
from tests.support.disk.storage import until
from tests.support.nodes.bridges import Gateway
from tests.support.nodes.preset_messages import MESSAGES
from tests.support.table import table


async def read(
    gateway: Gateway, settings: TopicsSettings, messages: list[tuple[str, object]]
) -> None:
    bridge = TopicsBridge(settings, gateway.host("topics", "t"))
    running = asyncio.create_task(bridge.run())
    for topic, payload in messages:
        gateway.subscriptions.publish(topic, json.dumps(payload).encode())
    await until(lambda: gateway.figure("topics/messages") == len(messages))
    running.cancel()
    with contextlib.suppress(asyncio.CancelledError):
        await running


@table("preset, topic, payload, expected", MESSAGES)
async def test_messages_of_a_preset(
    preset: str, topic: str, payload: object, expected: dict[str, object]
) -> None:
    gateway = Gateway.make()
    await read(gateway, TopicsSettings(preset=preset), [(topic, payload)])
    found = {name.removeprefix("sensors/"): each["value"] for name, each in gateway.broker.readings}
    assert found == expected


async def test_nodes_and_instances_are_made_of_fields() -> None:
    gateway = Gateway.make()
    settings = TopicsSettings(topics=("w/events",), node="{model}-{id}", instance="{channel}")
    messages = [
        ("w/events", {"model": "m", "id": 7, "channel": 2, "temp_c": 1}),
        ("w/events", {"model": "m", "channel": 2, "temp_c": 2}),
        ("w/events", {"temp_c": 3}),
    ]
    await read(gateway, settings, messages)
    assert [(topic, each["value"]) for topic, each in gateway.broker.readings] == [
        ("sensors/m-7/temperature/2", 1),
        ("sensors/m/temperature/2", 2),
    ]
    assert gateway.figure("topics/rejected") == 1


async def test_the_time_of_readings_and_a_name_by_paths() -> None:
    gateway = Gateway.make()
    settings = TopicsSettings(
        topics=("lora/+",), node="{end.id}", within="up.data", time="up.received_at"
    )
    message = {
        "end": {"id": "n1"},
        "up": {"data": {"t": 1}, "received_at": "2026-11-20T10:00:00Z", "port": 2},
    }
    await read(gateway, settings, [("lora/x", message), ("lora/x", {"end": {"id": "n1"}})])
    ((topic, reading),) = gateway.broker.readings
    assert (topic, reading["time"]) == ("sensors/n1/t", 1_795_168_800_000)


async def test_a_thermometer_keeps_its_series_when_others_come_and_go() -> None:
    """Tasmota numbers them only while there are several."""
    gateway = Gateway.make()
    a, b = ({"Id": f"01131B12{each}", "Temperature": 0} for each in ("AAAA", "BBBB"))

    def both(first: int, second: int) -> dict[str, object]:
        return {"DS18B20-1": a | {"Temperature": first}, "DS18B20-2": b | {"Temperature": second}}

    messages: list[dict[str, object]] = [
        {"DS18B20": a | {"Temperature": 60}},
        both(61, 20),
        {"DS18B20": b | {"Temperature": 21}},
        {"DS18B20": a | {"Temperature": 62}},
    ]
    every: list[tuple[str, object]] = [
        ("tele/w/SENSOR", each | {"TempUnit": "C"}) for each in messages
    ]
    await read(gateway, TopicsSettings(preset="tasmota"), every)
    plain, other = "sensors/w/temperature", "sensors/w/temperature/01131b12bbbb"
    assert [(topic, each["value"]) for topic, each in gateway.broker.readings] == [
        *((plain, 60), (plain, 61), (other, 20), (other, 21), (plain, 62))
    ]


UNITS: list[tuple[str, str, object, list[object]]] = [
    ("zigbee2mqtt", "zigbee2mqtt/a", {"power_left": 3, "current_phase_b": 1}, ["W", "A"]),
    ("zigbee2mqtt", "zigbee2mqtt/a", {"voltage_left": 3000, "battery": 80}, [None, "%"]),
    ("zigbee2mqtt", "zigbee2mqtt/a", {"current_calibration": 1, "power_on": 3}, [None, None]),
    ("zigbee2mqtt", "zigbee2mqtt/a", {"power_reactive": 1, "power": True}, ["var", None]),
    ("openmqttgateway", "home/x/BTtoMQTT/a", {"id": "a", "weight": 7, "unit": "kg"}, ["kg"]),
    ("openmqttgateway", "home/x/BTtoMQTT/a", {"id": "a", "hum": 7, "unit": "kg"}, ["%"]),
]


@table("preset, topic, payload, units", UNITS)
async def test_units(preset: str, topic: str, payload: object, units: list[object]) -> None:
    """A unit of one is that of several, not of a quantity whose name only begins so."""
    gateway = Gateway.make()
    await read(gateway, TopicsSettings(preset=preset), [(topic, payload)])
    assert [each.get("unit") for _, each in gateway.broker.readings] == units


async def test_states_and_numbers_with_units_are_text() -> None:
    gateway = Gateway.make()
    words = [b"ON", b"closed", b"21.5", b'"7"', b"21.5 \xc2\xb0C", b"nan", b"hello", b"\xff"]
    bridge = TopicsBridge(TopicsSettings(preset="esphome"), gateway.host("topics", "t"))
    running = asyncio.create_task(bridge.run())
    for word in words:
        gateway.subscriptions.publish("n/sensor/door/state", word)
    await until(lambda: gateway.figure("topics/messages") == len(words))
    running.cancel()
    found = [(each["value"], each.get("unit")) for _, each in gateway.broker.readings]
    assert found == [(True, None), (False, None), (21.5, None), (7, None), (21.5, "°C")]
    assert gateway.figure("topics/not_read") == 2


async def test_two_topics_of_one_series_are_apart() -> None:
    gateway = Gateway.make()
    messages: list[tuple[str, object]] = [
        ("x/status/switch:0", {"apower": 1}),
        ("x/status/em:0", {"total_act_power": 2}),
    ]
    await read(gateway, TopicsSettings(preset="shelly"), messages * 2)
    assert [(topic, each["value"]) for topic, each in gateway.broker.readings] == [
        ("sensors/x/power", 1),
        ("sensors/x/power/status-em:0", 2),
    ] * 2


async def test_devices_of_neighbours_are_strangers_unless_they_are_listed() -> None:
    gateway = Gateway.make()
    settings = TopicsSettings(preset="rtl_433", listed=("Acurite-*",))
    others = ({"model": "Toyota", "id": number, "temperature_C": 20} for number in range(600))
    messages: list[tuple[str, object]] = [
        ("rtl_433/pi/events", each) for each in ({"model": "Acurite-7"}, *others)
    ]
    await read(gateway, settings, messages)
    assert len(gateway.strangers) == UNLISTED_MAX
    assert "Toyota-599" in gateway.strangers
    assert not [each for each in gateway.strangers if each.startswith("Acurite")]


def test_a_topic_without_a_node_needs_one_made_of_fields() -> None:
    with pytest.raises(ValueError, match="node must be given"):
        TopicsSettings(topics=("w/events",))
