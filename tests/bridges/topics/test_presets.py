"""Messages of other programs, as their documentation and issues show them, to series."""

import asyncio
import contextlib
import json

import pytest

from gateway.bridges.topics.topics_bridge import TopicsBridge, TopicsSettings
from tests.support.disk.storage import until
from tests.support.nodes.bridges import Gateway
from tests.support.table import table

SWITCH = {"id": 0, "source": "init", "output": True, "apower": 11.5, "voltage": 230.1}
EM = {"id": 0, "a_voltage": 230.1, "b_voltage": 231.0, "a_act_power": 10.0, "total_act_power": 21.5}
ACURITE = {
    "time": "2026-11-20 10:00:00",
    "model": "Acurite-Tower",
    "id": 1234,
    "channel": "A",
    "battery_ok": 1,
    "temperature_C": 20.5,
    "humidity": 50,
    "mic": "CHECKSUM",
}
LYWSD = {
    "id": "A4:C1:38:8C:34:B7",
    "name": "ATC_8C34B7",
    "rssi": -60,
    "brand": "Xiaomi",
    "tempc": 25.2,
    "tempf": 77.36,
    "hum": 52,
    "batt": 100,
    "volt": 3.0,
}

UPLINK = {
    "deduplicationId": "3ac7e3c4-4401-4b8d-9386-a5c902f9202d",
    "time": "2026-11-20T10:00:00.775023+00:00",
    "deviceInfo": {"deviceName": "cellar", "devEui": "0101010101010101"},
    "fCnt": 4,
    "rxInfo": [{"gatewayId": "0016c001f153a14c", "rssi": -48, "snr": 9}],
    "object": {"temperature": 6.5, "humidity": 71, "door": {"open": True}},
}
BATTERY = {"time": UPLINK["time"], "margin": 10, "batteryLevel": 98.4, "fCnt": 5}
PF: dict[str, object] = {"c/power_factor": 50}

MESSAGES: list[tuple[str, str, object, dict[str, object]]] = [
    (
        "shelly",
        "plug/status/switch:0",
        SWITCH
        | {"aenergy": {"total": 100.5, "minute_ts": 1}, "temperature": {"tC": 40, "tF": 104}},
        {
            "plug/output": True,
            "plug/power": 11.5,
            "plug/voltage": 230.1,
            "plug/energy": 100.5,
            "plug/temperature": 40,
        },
    ),
    (
        "shelly",
        "plug/status/switch:3",
        SWITCH | {"id": 3, "aenergy": {"total": 400}},
        {
            "plug/output/3": True,
            "plug/power/3": 11.5,
            "plug/voltage/3": 230.1,
            "plug/energy/3": 400,
        },
    ),
    (
        "shelly",
        "em/status/em:0",
        EM,
        {"em/voltage/a": 230.1, "em/voltage/b": 231.0, "em/power/a": 10.0, "em/power": 21.5},
    ),
    ("shelly", "shellies/old/relay/1/power", 60, {"old/power/1": 60}),
    ("shelly", "shellies/old/emeter/0/voltage", 230, {"old/voltage": 230}),
    ("shelly", "shellies/old/emeter/1/total", 1234.5, {"old/energy/1": 1234.5}),
    ("shelly", "c/status/cover:0", {"current_pos": 40, "pf": 0.5}, {"c/position": 40} | PF),
    ("shelly", "x/status/temperature:100", {"id": 100, "tC": 5.5}, {"x/temperature/100": 5.5}),
    (
        "tasmota",
        "tele/w/SENSOR",
        {
            "Time": "2026-11-20T10:00:00",
            "SI7021-14": {"Temperature": 20.5, "Humidity": 40},
            "SI7021-15": {"Temperature": 21.5},
            "TempUnit": "C",
        },
        {
            "w/temperature/SI7021-14": 20.5,
            "w/humidity/SI7021-14": 40,
            "w/temperature/SI7021-15": 21.5,
        },
    ),
    (
        "rtl_433",
        "rtl_433/pi/events",
        ACURITE,
        {
            "Acurite-Tower-A-1234/battery": 100,
            "Acurite-Tower-A-1234/temperature": 20.5,
            "Acurite-Tower-A-1234/humidity": 50,
        },
    ),
    (
        "openmqttgateway",
        "home/OpenMQTTGateway/BTtoMQTT/A4C1388C34B7",
        LYWSD,
        {
            "a4c1388c34b7/signal_strength": -60,
            "a4c1388c34b7/temperature": 25.2,
            "a4c1388c34b7/humidity": 52,
            "a4c1388c34b7/battery": 100,
            "a4c1388c34b7/voltage": 3.0,
        },
    ),
    ("shelly", "shellies/s1/ext_temperature/0", 21.5, {"s1/temperature": 21.5}),
    ("shelly", "shellies/s1/ext_temperature/2", 22.5, {"s1/temperature/2": 22.5}),
    (
        "tasmota",
        "tele/em/SENSOR",
        {
            "ENERGY": {"Total": [1.5, 2.5], "Today": [1, 2], "Factor": [0.9, 0.8], "Period": [1]},
            "SHT3X-0x44": {"Humidity": 40},
            "SCD40": {"CarbonDioxide": 500},
        },
        {
            "em/energy/1": 1.5,
            "em/energy/2": 2.5,
            "em/power_factor/1": 90,
            "em/power_factor/2": 80,
            "em/humidity/SHT3X-0x44": 40,
            "em/carbon_dioxide": 500,
        },
    ),
    (
        "zigbee2mqtt",
        "zigbee2mqtt/two",
        {"power_left": 3, "temperature_l1": 20, "action": "", "update": {"latest_version": 3}},
        {"two/power_left": 3, "two/temperature_l1": 20},
    ),
    (
        "chirpstack",
        "application/7/device/0101010101010101/event/up",
        UPLINK,
        {
            "0101010101010101/temperature": 6.5,
            "0101010101010101/humidity": 71,
            "0101010101010101/door.open": True,
        },
    ),
    (
        "chirpstack",
        "application/7/device/0101010101010101/event/status",
        BATTERY,
        {"0101010101010101/battery": 98.4, "0101010101010101/link_margin": 10},
    ),
    ("zigbee2mqtt", "zigbee2mqtt/remote", {"action": "single"}, {"remote/action": "single"}),
]


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
        *((plain, 60), (plain, 61), (other, 20), (other, 21), (plain, 62)),
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


async def test_states_are_words() -> None:
    gateway = Gateway.make()
    words = [b"ON", b"closed", b"21.5", b"nan", b"hello"]
    bridge = TopicsBridge(TopicsSettings(preset="esphome"), gateway.host("topics", "t"))
    running = asyncio.create_task(bridge.run())
    for word in words:
        gateway.subscriptions.publish("n/sensor/door/state", word)
    await until(lambda: gateway.figure("topics/messages") == len(words))
    running.cancel()
    assert [each["value"] for _, each in gateway.broker.readings] == [True, False, 21.5]
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


def test_a_topic_without_a_node_needs_one_made_of_fields() -> None:
    with pytest.raises(ValueError, match="node must be given"):
        TopicsSettings(topics=("w/events",))
