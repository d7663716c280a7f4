"""What Home Assistant is told: devices by its rules, births, absence, and what goes away."""

import asyncio
import contextlib
import json
import re
from typing import Any

import pytest

from gateway.bridges.discovery import homeassistant
from gateway.bridges.discovery.device_payload import RECENT_UNITS, SERIES_MAX, component_of, slug
from gateway.bridges.discovery.homeassistant import HELD_MAX, HomeAssistant, HomeAssistantSettings
from gateway.bridges.readings.registry import QUANTITIES
from gateway.bridges.supervision.control import BUTTON, SWITCH, Control
from gateway.mqtt.reason_codes import ReasonCode
from tests.support.clocks import ManualClock
from tests.support.disk.storage import until
from tests.support.nodes.bridges import Gateway
from tests.support.table import table

WEEK = 604_800
CONFIG = "homeassistant/device/tidegate_barn_n1/config"
AVAILABILITY = "tidegate/availability/tidegate_barn_n1"
STATE = "tidegate/state/tidegate_barn_n1/"


@pytest.fixture
def gateway(clock: ManualClock) -> Gateway:
    return Gateway.make(clock)


def started(gateway: Gateway) -> HomeAssistant:
    return HomeAssistant(HomeAssistantSettings(), gateway.host("homeassistant", "ha"))


def hear(gateway: Gateway, topic: str, value: object, unit: str | None = None) -> None:
    fields = {"value": value, **({"unit": unit} if unit else {})}
    gateway.subscriptions.publish(topic, json.dumps(fields).encode())


REQUIRED = {
    "sensor": {"unique_id", "state_topic"},
    "binary_sensor": {"unique_id", "state_topic"},
    "event": {"unique_id", "state_topic", "event_types"},
    "switch": {"unique_id", "state_topic", "command_topic"},
    "number": {"unique_id", "state_topic", "command_topic", "min", "max", "step"},
    "select": {"unique_id", "state_topic", "command_topic", "options"},
    "button": {"unique_id", "command_topic"},
}
"""Keys of each platform (home-assistant.io/integrations/<platform>.mqtt)."""


def follows_the_rules(topic: str, payload: dict[str, Any]) -> None:
    """Check a discovery message as Home Assistant's MQTT integration documents it."""
    match = re.fullmatch(r"homeassistant/device/([a-zA-Z0-9_-]+)/config", topic)
    assert match
    assert payload["device"]["identifiers"]
    assert payload["origin"]["name"]
    assert payload["components"]
    for one in payload["components"].values():
        assert REQUIRED[one["platform"]] <= set(one)
        known = QUANTITIES.get(one.get("device_class", ""))
        if one["platform"] != "sensor":
            assert one["platform"] == "number" or not {"state_class", "unit_of_measurement"} & set(
                one
            )
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
    bridge.check()
    hear(gateway, "sensors/n1/temperature", 22.5, "°C")
    bridge.check()
    payload = json.loads(gateway.retained[CONFIG])
    follows_the_rules(CONFIG, payload)
    assert payload["components"]["temperature"] == {
        "platform": "sensor",
        "unique_id": "tidegate_barn_n1_temperature",
        "name": "Temperature",
        "state_topic": STATE + "temperature",
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
    bridge.check()
    payload = json.loads(gateway.retained[CONFIG])
    follows_the_rules(CONFIG, payload)
    found = payload["components"].values()
    assert [(each["name"], each["state_topic"].removeprefix(STATE)) for each in found] == [
        ("Voltage l1", slug("voltage/l1")),
        ("Voltage l2", slug("voltage/l2")),
        ("Voltage l1", "voltage_l1"),
        ("Voltage", "voltage"),
    ]
    assert all(each["device_class"] == "voltage" for each in found)


def test_a_birth_sends_everything_again(gateway: Gateway) -> None:
    bridge = started(gateway)
    hear(gateway, "sensors/n1/temperature", 21.5, "°C")
    bridge.check()
    before = len(gateway.broker.messages)
    gateway.subscriptions.publish("homeassistant/status", b"offline")
    bridge.check()
    assert len(gateway.broker.messages) == before
    gateway.subscriptions.publish("homeassistant/status", b"online")
    bridge.check()
    assert [message.topic for message in gateway.broker.messages[before:]] == [CONFIG, AVAILABILITY]


def test_a_silent_node_is_unavailable_and_after_a_week_it_is_gone(
    gateway: Gateway, clock: ManualClock
) -> None:
    bridge = started(gateway)
    for _ in range(6):
        clock.step(10)
        hear(gateway, "sensors/n1/temperature", 21.5, "°C")
        bridge.check()
    clock.step(101)
    bridge.check()
    assert gateway.retained[AVAILABILITY] == b"offline"
    hear(gateway, "sensors/n1/temperature", 21.5, "°C")
    bridge.check()
    assert gateway.retained[AVAILABILITY] == b"online"
    clock.step(WEEK - 1)
    bridge.check()
    assert CONFIG in gateway.retained
    clock.step(1)
    bridge.check()
    assert gateway.retained == {}


def test_what_an_earlier_run_announced_is_known_and_goes_when_its_node_does(
    gateway: Gateway, clock: ManualClock
) -> None:
    bridge = started(gateway)
    hear(gateway, "sensors/n1/temperature", 21.5, "°C")
    hear(gateway, "sensors/n2/temperature", 21.5, "°C")
    bridge.check()
    for topic, payload in (("other", b'{"origin":{"name":"zigbee2mqtt"}}'), ("junk", b"\xff")):
        gateway.retained[f"homeassistant/device/{topic}/config"] = payload
    gateway.subscriptions.receivers.clear()
    again = started(gateway)
    again.check()
    assert gateway.retained[AVAILABILITY] == b"offline"
    clock.step(WEEK // 2)
    hear(gateway, "sensors/n1/humidity", 40, "%")
    again.check()
    assert set(json.loads(gateway.retained[CONFIG])["components"]) == {"temperature", "humidity"}
    clock.step(WEEK // 2)
    again.check()
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
    ("soil_temperature", 9, "°C", {"device_class": "temperature", "state_class": "measurement"}),
    ("current_temperature", 9, "°C", {"device_class": "temperature"}),
    ("stored_energy", 9, "kWh", {"device_class": None}),
    ("energy_net", 9, "kWh", {"device_class": "energy", "state_class": "total"}),
    ("pir_2", True, None, {"device_class": "motion"}),
    ("motion_2", True, None, {"device_class": "motion", "platform": "binary_sensor"}),
    ("door_bell", True, None, {"device_class": None, "platform": "binary_sensor"}),
    ("x y/é", 1, None, {"unique_id": f"i_{slug('x y/é')}"}),
]


@table(("quantity", "value", "unit", "expected"), COMPONENTS)
def test_components(
    quantity: str, value: object, unit: str | None, expected: dict[str, str | None]
) -> None:
    component = component_of("i", "n", quantity, value, unit)
    assert {key: component.get(key) for key in expected} == expected
    follows_the_rules(
        "homeassistant/device/i/config",
        {"device": {"identifiers": "i"}, "origin": {"name": "x"}, "components": {"a": component}},
    )


def test_units_that_only_recent_versions_know_have_no_class() -> None:
    for name, unit in RECENT_UNITS:
        assert unit in QUANTITIES[name].units
        component = component_of("i", "n", name, 5, unit)
        assert "device_class" not in component
        assert component["unit_of_measurement"] == unit
        usual = component_of("i", "n", name, 5, QUANTITIES[name].units[0])
        assert usual["device_class"] == name


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
    bridge.check()
    assert len(json.loads(gateway.retained[CONFIG])["components"]) == SERIES_MAX


def said(gateway: Gateway, bridge: HomeAssistant) -> list[tuple[str, Any]]:
    """What was said of values since the last time, by the name of the state topic."""
    gateway.broker.messages.clear()
    bridge.publish_waiting()
    return [
        (topic.removeprefix(STATE), fields.get("value", fields.get("event_type")))
        for topic, fields in gateway.broker.readings
    ]


def test_values_are_said_as_they_come_and_again_after_an_announcement(
    gateway: Gateway, clock: ManualClock
) -> None:
    bridge = started(gateway)
    hear(gateway, "sensors/n1/temperature", 21.5, "°C")
    hear(gateway, "sensors/n1/button", "press")
    hear(gateway, "sensors/n1/button", "double_press")
    assert said(gateway, bridge) == [("temperature", 21.5)]
    bridge.check()
    component = json.loads(gateway.retained[CONFIG])["components"]["button"]
    assert (component["platform"], component["event_types"]) == ("event", ["double_press", "press"])
    presses = [("button", "press"), ("button", "double_press")]
    for delay, events in ((3, presses), (27, [])):
        assert said(gateway, bridge) == []
        clock.step(delay)
        bridge.check()
        assert said(gateway, bridge) == [("temperature", 21.5), *events], "no event happens twice"
    gateway.subscriptions.publish("homeassistant/status", b"online")
    for delay, expected in ((0, 0), (3, 1), (27, 1), (60, 0)):
        clock.step(delay)
        bridge.check()
        assert len(said(gateway, bridge)) == expected, "a value of an hour ago is known at once"


def test_an_event_waits_only_until_home_assistant_knows_its_kind(
    gateway: Gateway, clock: ManualClock
) -> None:
    bridge = started(gateway)
    for _ in range(HELD_MAX + 5):
        hear(gateway, "sensors/n1/button", "press")
    assert said(gateway, bridge) == []
    for delay in (0, 3):
        clock.step(delay)
        bridge.check()
    assert said(gateway, bridge) == [("button", "press")] * HELD_MAX
    assert gateway.figure("homeassistant/overflow") == 5
    hear(gateway, "sensors/n1/button", "press")
    hear(gateway, "sensors/n1/temperature", 21.5, "°C")  # the device is announced anew
    hear(gateway, "sensors/n1/button", "press")
    assert [name for name, _ in said(gateway, bridge)] == ["button", "temperature", "button"]
    hear(gateway, "sensors/n1/button", "hold")
    assert said(gateway, bridge) == []
    for delay in (0, 3):
        clock.step(delay)
        bridge.check()
    assert ("button", "hold") in said(gateway, bridge)
    gateway.subscriptions.publish("homeassistant/status", b"online")
    hear(gateway, "sensors/n1/button", "press")
    assert said(gateway, bridge) == []


def test_what_has_waited_and_what_cannot_be_right_is_no_state(
    gateway: Gateway, clock: ManualClock
) -> None:
    bridge = started(gateway)

    def reported(value: float, **fields: object) -> None:
        payload = json.dumps({"value": value, "unit": "°C", **fields}).encode()
        gateway.subscriptions.publish("sensors/n1/temperature", payload)

    now = clock.wall_ms()
    reported(1, time=now - 3_600_000)
    reported(2, time=now)
    reported(3, time=now - 299_000)  # a state does not go back
    for quality in ("out_of_range", "fell", "jumped"):
        reported(-127, time=now, quality=quality)
    reported(4, time=now + 60_000)
    reported(5, time=now + 1)  # a node whose clock was ahead
    reported(6)
    assert [value for _, value in said(gateway, bridge)] == [2, 4, 5, 6]
    assert gateway.figure("homeassistant/old") == 2


def test_a_quantity_that_stops_while_its_node_goes_on_has_no_value_after_a_while(
    gateway: Gateway, clock: ManualClock
) -> None:
    bridge = started(gateway)
    gateway.host("modbus", "m").set_longest_gap("sensors/n1/level", 3600)
    hear(gateway, "sensors/n1/level", 5, "cm")
    hear(gateway, "sensors/n1/door", value=True)
    for _ in range(5):
        clock.step(10)
        hear(gateway, "sensors/n1/temperature", 21.5, "°C")
        hear(gateway, "sensors/n1/humidity", 40, "%")
    bridge.check()
    components = json.loads(gateway.retained[CONFIG])["components"]
    expiries = {name: each.get("expire_after") for name, each in components.items()}
    assert expiries == {"level": 43_200, "door": None, "temperature": 300, "humidity": 300}
    clock.step(700)  # a node that filters
    hear(gateway, "sensors/n1/temperature", 22.5, "°C")
    bridge.check()
    components = json.loads(gateway.retained[CONFIG])["components"]
    assert components["temperature"]["expire_after"] == 7_200
    gateway.subscriptions.receivers.clear()
    again = started(gateway)
    hear(gateway, "sensors/n1/temperature", 22.5, "°C")
    again.check()
    assert json.loads(gateway.retained[CONFIG])["components"] == components, "also after a restart"


def test_a_door_that_is_quiet_is_not_offline(gateway: Gateway, clock: ManualClock) -> None:
    bridge = started(gateway)
    for value in (True, False, True, False, True):
        clock.step(2)
        hear(gateway, "sensors/n1/door", value=value)
    clock.step(86_400)
    bridge.check()
    assert gateway.retained[AVAILABILITY] == b"online"


def test_what_can_be_written_is_a_control(gateway: Gateway) -> None:
    bridge = started(gateway)
    other = gateway.host("modbus", "m")
    number = Control("number", 5, 30, 0.5, "°C")
    choice = Control("select", options=("off", "heat"))
    controls = {"target": number, "mode": choice, "reset": BUTTON, "relay/2": SWITCH}
    for series, control in controls.items():
        other.offer(f"sensors/n1/{series}", control, lambda _message: ReasonCode.SUCCESS)
    bridge.check()
    hear(gateway, "sensors/n1/relay/2", value=True)
    hear(gateway, "sensors/n1/target", 21.5, "°C")
    bridge.check()
    payload = json.loads(gateway.retained[CONFIG])
    follows_the_rules(CONFIG, payload)
    components = payload["components"]
    assert {name: each["platform"] for name, each in components.items()} == {
        "target": "number",
        "mode": "select",
        "reset": "button",
        slug("relay/2"): "switch",
    }
    assert components["target"]["command_topic"] == "sensors/n1/target/set"
    assert (components["target"]["min"], components["target"]["max"]) == (5, 30)
    assert components[slug("relay/2")]["payload_on"] == "on"
    assert said(gateway, bridge) == [(slug("relay/2"), True), ("target", 21.5)]
    other.close()
    assert gateway.controls == {}


def test_strangers_are_bounded_make_room_and_are_forgotten(
    gateway: Gateway, clock: ManualClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(homeassistant, "NODES_MAX", 5)
    monkeypatch.setattr(homeassistant, "STRANGERS_MAX", 4)
    bridge = started(gateway)
    for number in range(6):
        gateway.strangers.add(f"s{number}")
        hear(gateway, f"sensors/s{number}/temperature", 20, "°C")
    for name in ("a", "b", "c"):
        hear(gateway, f"sensors/{name}/temperature", 20, "°C")
    bridge.check()

    def announced() -> list[str]:
        names = [topic.split("/")[2] for topic in gateway.retained if "/device/" in topic]
        return sorted(name.removeprefix("tidegate_barn_") for name in names)

    assert announced() == ["a", "b", "c", "s2", "s3"]
    assert gateway.figure("homeassistant/not_announced") == 2
    gateway.subscriptions.receivers.clear()
    gateway.strangers.clear()
    again = started(gateway)
    hear(gateway, "sensors/s2/temperature", 21, "°C")  # it is listed now
    gateway.strangers.add("s9")
    hear(gateway, "sensors/s9/temperature", 20, "°C")
    again.check()
    assert "s9" not in announced()
    clock.step(3_600)
    hear(gateway, "sensors/s9/temperature", 20, "°C")
    again.check()
    assert announced() == ["a", "b", "c", "s2", "s9"], "it has the place of one that is silent"
    hear(gateway, "sensors/s2/temperature", 20, "°C")
    clock.step(86_400)
    again.check()
    assert announced() == ["a", "b", "c", "s2"], "a stranger is one after a restart, too"
    again.forget("a")
    assert announced() == ["b", "c", "s2"]


async def test_a_running_bridge_says_values_at_once_and_announces_within_a_second(
    gateway: Gateway,
) -> None:
    bridge = started(gateway)
    running = asyncio.create_task(bridge.run())
    await asyncio.sleep(0)
    hear(gateway, "sensors/n1/temperature", 21.5, "°C")
    await until(lambda: bool(gateway.broker.messages))
    assert gateway.broker.messages[0].topic == STATE + "temperature"
    await until(lambda: CONFIG in gateway.retained)
    running.cancel()
    with contextlib.suppress(asyncio.CancelledError):
        await running


def test_values_that_wait_are_bounded(gateway: Gateway, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(homeassistant, "WAITING_MAX", 2)
    bridge = started(gateway)
    for value in range(5):
        hear(gateway, "sensors/n1/temperature", value, "°C")
    assert [value for _, value in said(gateway, bridge)] == [3, 4]
    assert gateway.figure("homeassistant/overflow") == 3
