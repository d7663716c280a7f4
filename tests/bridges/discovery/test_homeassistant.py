"""What Home Assistant is told: devices by its rules, births, absence, and what goes away."""

import json
import re
from typing import Any

import pytest

from gateway.bridges.discovery.device_payload import QUANTITIES_MAX, component_of, slug
from gateway.bridges.discovery.homeassistant import HomeAssistant, HomeAssistantSettings
from gateway.bridges.readings.registry import QUANTITIES
from tests.support.clocks import ManualClock
from tests.support.nodes.bridges import Gateway

WEEK = 604_800
CONFIG = "homeassistant/device/tidegate_barn_n1/config"
AVAILABILITY = "tidegate/availability/tidegate_barn_n1"


@pytest.fixture
def gateway(clock: ManualClock) -> Gateway:
    return Gateway.make(clock)


def started(gateway: Gateway) -> HomeAssistant:
    return HomeAssistant(HomeAssistantSettings(), gateway.host("homeassistant", "ha"))


def hear(gateway: Gateway, topic: str, value: object, unit: str | None = None) -> None:
    fields = {"value": value, **({"unit": unit} if unit else {})}
    gateway.subscriptions.publish(topic, json.dumps(fields).encode())


def follows_the_rules(topic: str, payload: dict[str, Any]) -> None:
    """Check a discovery message as Home Assistant's MQTT integration documents it."""
    match = re.fullmatch(r"homeassistant/device/([a-zA-Z0-9_-]+)/config", topic)
    assert match
    assert payload["device"]["identifiers"]
    assert payload["origin"]["name"]
    assert payload["components"]
    for one in payload["components"].values():
        assert {"platform", "unique_id", "state_topic"} <= set(one)
        assert one["platform"] in ("sensor", "binary_sensor")
        known = QUANTITIES.get(one.get("device_class", ""))
        if one["platform"] == "binary_sensor":
            assert not {"state_class", "unit_of_measurement"} & set(one)
        elif known is not None:
            assert one.get("unit_of_measurement") in (known.units or (None,))
        if one.get("state_class") == "measurement_angle":
            assert one["unit_of_measurement"] == "°"
    identifiers = [one["unique_id"] for one in payload["components"].values()]
    assert len(set(identifiers)) == len(identifiers)


def test_a_node_is_announced_once_with_its_quantities(gateway: Gateway) -> None:
    bridge = started(gateway)
    hear(gateway, "sensors/n1/temperature", 21.5, "°C")
    hear(gateway, "sensors/n1/motion", True)
    bridge.look()
    hear(gateway, "sensors/n1/temperature", 22.5, "°C")
    bridge.look()
    payload = json.loads(gateway.retained[CONFIG])
    follows_the_rules(CONFIG, payload)
    assert payload["components"]["temperature"] == {
        "platform": "sensor",
        "unique_id": "tidegate_barn_n1_temperature",
        "name": "Temperature",
        "state_topic": "sensors/n1/temperature",
        "value_template": "{{ value_json.value }}",
        "unit_of_measurement": "°C",
        "state_class": "measurement",
        "device_class": "temperature",
    }
    assert payload["components"]["motion"]["platform"] == "binary_sensor"
    assert payload["availability"] == [{"topic": AVAILABILITY}]
    assert gateway.retained[AVAILABILITY] == b"online"
    assert gateway.figure("homeassistant/announced") == 1


def test_several_of_one_quantity_are_components_of_their_own(gateway: Gateway) -> None:
    bridge = started(gateway)
    for series in ("voltage/l1", "voltage/l2", "voltage_l1", "voltage"):
        hear(gateway, f"sensors/n1/{series}", 230, "V")
    hear(gateway, "sensors/n1/power_on/set", True)
    hear(gateway, "sensors/n1/command/answer", 1)
    bridge.look()
    payload = json.loads(gateway.retained[CONFIG])
    follows_the_rules(CONFIG, payload)
    found = payload["components"].values()
    assert [(each["name"], each["state_topic"].removeprefix("sensors/n1/")) for each in found] == [
        ("Voltage l1", "voltage/l1"),
        ("Voltage l2", "voltage/l2"),
        ("Voltage l1", "voltage_l1"),
        ("Voltage", "voltage"),
    ]
    assert all(each["device_class"] == "voltage" for each in found)


def test_a_birth_sends_everything_again(gateway: Gateway) -> None:
    bridge = started(gateway)
    hear(gateway, "sensors/n1/temperature", 21.5, "°C")
    bridge.look()
    before = len(gateway.broker.messages)
    gateway.subscriptions.publish("homeassistant/status", b"offline")
    bridge.look()
    assert len(gateway.broker.messages) == before
    gateway.subscriptions.publish("homeassistant/status", b"online")
    bridge.look()
    assert [message.topic for message in gateway.broker.messages[before:]] == [CONFIG, AVAILABILITY]


def test_a_silent_node_is_unavailable_and_after_a_week_it_is_gone(
    gateway: Gateway, clock: ManualClock
) -> None:
    bridge = started(gateway)
    for _ in range(6):
        clock.step(10)
        hear(gateway, "sensors/n1/temperature", 21.5, "°C")
        bridge.look()
    clock.step(101)
    bridge.look()
    assert gateway.retained[AVAILABILITY] == b"offline"
    hear(gateway, "sensors/n1/temperature", 21.5, "°C")
    bridge.look()
    assert gateway.retained[AVAILABILITY] == b"online"
    clock.step(WEEK - 1)
    bridge.look()
    assert CONFIG in gateway.retained
    clock.step(1)
    bridge.look()
    assert gateway.retained == {}


def test_what_an_earlier_run_announced_is_known_and_goes_when_its_node_does(
    gateway: Gateway, clock: ManualClock
) -> None:
    bridge = started(gateway)
    hear(gateway, "sensors/n1/temperature", 21.5, "°C")
    hear(gateway, "sensors/n2/temperature", 21.5, "°C")
    bridge.look()
    for topic, payload in (("other", b'{"origin":{"name":"zigbee2mqtt"}}'), ("junk", b"\xff")):
        gateway.retained[f"homeassistant/device/{topic}/config"] = payload
    gateway.subscriptions.receivers.clear()
    again = started(gateway)
    again.look()
    assert gateway.retained[AVAILABILITY] == b"offline"
    clock.step(WEEK // 2)
    hear(gateway, "sensors/n1/humidity", 40, "%")
    again.look()
    assert set(json.loads(gateway.retained[CONFIG])["components"]) == {"temperature", "humidity"}
    clock.step(WEEK // 2)
    again.look()
    assert CONFIG in gateway.retained
    left = [topic for topic in gateway.retained if "/device/" in topic and topic != CONFIG]
    assert left == ["homeassistant/device/other/config", "homeassistant/device/junk/config"]


COMPONENTS: list[tuple[str, object, str | None, dict[str, str | None]]] = [
    ("temperature", 21, "°C", {"device_class": "temperature", "state_class": "measurement"}),
    ("temperature", 21, "bananas", {"device_class": None, "state_class": "measurement"}),
    ("temperature", "warm", "°C", {"device_class": None, "unit_of_measurement": None}),
    ("energy", 5, "kWh", {"device_class": "energy", "state_class": "total_increasing"}),
    ("ph", 7, None, {"device_class": "ph", "unit_of_measurement": None}),
    ("wind_direction", 90, "°", {"state_class": "measurement_angle"}),
    ("battery_low", False, None, {"platform": "binary_sensor", "device_class": "battery"}),
    ("motion", 1, None, {"platform": "sensor", "device_class": None}),
    ("level", 5, "cm", {"device_class": None, "state_class": "measurement"}),
    ("voltage_l1", 230, "V", {"device_class": "voltage", "unit_of_measurement": "V"}),
    ("energy_t1", 5, "kWh", {"device_class": "energy", "state_class": "total_increasing"}),
    ("temperature_2", 5, "°C", {"device_class": "temperature", "state_class": "measurement"}),
    ("temperature_water_in", 5, "°F", {"device_class": "temperature"}),
    ("temperature_2", 5, None, {"device_class": None, "state_class": "measurement"}),
    ("energy_state", 5, None, {"device_class": None, "state_class": "measurement"}),
    ("temp_2", 5, "°C", {"device_class": "temperature"}),
    ("power_factor_l1", 98, "%", {"device_class": "power_factor"}),
    ("pir_2", True, None, {"device_class": "motion"}),
    ("motion_2", True, None, {"device_class": "motion", "platform": "binary_sensor"}),
    ("door_bell", True, None, {"device_class": None, "platform": "binary_sensor"}),
    ("x y/é", 1, None, {"unique_id": f"i_{slug('x y/é')}"}),
]


@pytest.mark.parametrize(("quantity", "value", "unit", "expected"), COMPONENTS)
def test_components(
    quantity: str, value: object, unit: str | None, expected: dict[str, str | None]
) -> None:
    component = component_of("i", "n", quantity, value, unit)
    assert {key: component.get(key) for key in expected} == expected
    follows_the_rules(
        "homeassistant/device/i/config",
        {"device": {"identifiers": "i"}, "origin": {"name": "x"}, "components": {"a": component}},
    )


def test_every_quantity_of_the_registry_keeps_the_rules() -> None:
    for quantity in QUANTITIES.values():
        for unit in (*quantity.units, None, "?"):
            for value in (1, 1.5, True, "text"):
                component = component_of("i", "n", quantity.name, value, unit)
                payload = {"device": {"identifiers": "i"}, "origin": {"name": "x"}}
                follows_the_rules(
                    "homeassistant/device/i/config", {**payload, "components": {"a": component}}
                )


def test_names_that_cannot_stand_in_a_topic_stay_different() -> None:
    names = ["a b", "a_b", "a.b", "é", "è"]
    assert len({slug(name) for name in names}) == len(names)
    assert all(re.fullmatch("[A-Za-z0-9_-]+", slug(name)) for name in names)


def test_a_node_of_a_thousand_quantities_and_garbage_are_bounded(gateway: Gateway) -> None:
    bridge = started(gateway)
    for place in range(1000):
        hear(gateway, f"sensors/n1/q{place}", place)
    for payload in (b"", b"5", b"[]", b"{}", b'{"value":null}', b"\xff", b"[" * 5000):
        gateway.subscriptions.publish("sensors/n1/junk", payload)
    bridge.look()
    assert len(json.loads(gateway.retained[CONFIG])["components"]) == QUANTITIES_MAX
