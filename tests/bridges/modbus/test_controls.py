"""What can be written: switches, numbers, choices and buttons, with their limits."""

from typing import Any

import pytest

from gateway.bridges.modbus.modbus_settings import ModbusSettings
from gateway.bridges.modbus.register import Register
from gateway.bridges.supervision.control import BUTTON, SWITCH, Control
from gateway.config.reader import Reader
from tests.bridges.modbus.test_modbus_bridge import bridging, serving, values
from tests.support.disk.storage import until
from tests.support.nodes.bridges import Gateway
from tests.support.ports import free_port
from tests.support.table import table

MODES = (("off", 0.0), ("heat", 230.0))


@pytest.fixture
def gateway() -> Gateway:
    return Gateway.make()


CONTROLS: list[tuple[dict[str, Any], Control]] = [
    ({"table": "coil", "writable": True}, SWITCH),
    ({"press": 1}, BUTTON),
    ({"writable": True, "options": MODES}, Control("select", options=("off", "heat"))),
    ({"writable": True}, Control("number", 0, 65_535, 1)),
    (
        {"writable": True, "type": "int16", "scale": 0.1, "unit": "°C"},
        Control("number", -3276.8, 3276.7, 0.1, "°C"),
    ),
    ({"writable": True, "scale": 0.5, "minimum": 5, "maximum": 30}, Control("number", 5, 30, 0.5)),
    ({"writable": True, "type": "float32"}, Control("number", -1e9, 1e9, 0.001)),
]


@table("settings, expected", CONTROLS)
def test_how_a_register_is_offered(settings: dict[str, Any], expected: Control) -> None:
    assert Register(0, "x", **settings).control == expected


PAYLOADS: list[tuple[dict[str, Any], bytes, float | None]] = [
    ({}, b"5", 5),
    ({}, b'{"value": 5.5}', 5.5),
    ({}, b"on", 1),
    ({}, b'{"value": "off"}', 0),
    ({"table": "coil"}, b'"ON"', 1),
    ({"table": "coil"}, b"0", 0),
    ({"table": "coil"}, b"21", None),
    ({"table": "coil"}, b"-1", None),
    ({"minimum": 5, "maximum": 30}, b"4.9", None),
    ({"minimum": 5, "maximum": 30}, b"31", None),
    ({"options": MODES}, b"heat", 230),
    ({"options": MODES}, b'{"value": "off"}', 0),
    ({"options": MODES}, b"230", 230),
    ({"options": MODES}, b"7", None),
    ({"options": MODES}, b"on", None),
    ({"press": 7}, b"PRESS", 7),
]


@table("settings, payload, expected", PAYLOADS)
def test_what_is_written(settings: dict[str, Any], payload: bytes, expected: float | None) -> None:
    register = Register(0, "x", writable=True, **settings)
    if expected is None:
        with pytest.raises(ValueError, match=r"allowed|Expecting"):
            register.number_of(payload)
    else:
        assert register.number_of(payload) == expected


MISTAKES: list[tuple[dict[str, Any], str]] = [
    ({"minimum": 5, "maximum": 4}, "minimum"),
    ({"options": {"far": 70_000}}, "options.far"),
    ({"options": {"a": 1, "b": 1}}, "of its own"),
    ({"options": {}}, "1 to 64 names"),
    ({"options": {"a": 1}, "table": "coil"}, "on or off"),
    ({"press": 70_000}, "press"),
    ({"press": 1, "table": "input"}, "only coils"),
]


@table("settings, reason", MISTAKES)
def test_what_cannot_be_written(settings: dict[str, Any], reason: str) -> None:
    reader = Reader("tidegate.toml")
    table = {"address": 0, "quantity": "x", **settings}
    reader.read(ModbusSettings, {"port": "tcp://192.0.2.1", "register": [table]})
    assert reason in " ".join(str(each) for each in reader.mistakes)


async def test_a_choice_is_published_and_a_button_is_only_written(gateway: Gateway) -> None:
    port = free_port()
    registers: list[dict[str, Any]] = [
        {"address": 3, "quantity": "mode", "writable": True, "options": MODES, "interval": 0.05},
        {"address": 1, "quantity": "reset", "press": 7},
        {"address": 1, "quantity": "count", "interval": 0.05},
    ]
    bridge = bridging(gateway, f"tcp://127.0.0.1:{port}", register=registers)
    async with serving(port), bridge:
        await until(lambda: len(values(gateway, "mode")) > 1)
        assert set(gateway.controls) == {"sensors/plc/mode", "sensors/plc/reset"}
        reported = gateway.subscriptions.publish("sensors/plc/mode/set", b"off")
        reported += gateway.subscriptions.publish("sensors/plc/reset/set", b"press")
        reported += gateway.subscriptions.publish("sensors/plc/mode/set", b"cool")
        await until(lambda: values(gateway, "mode")[-1] == "off")
        await until(lambda: values(gateway, "count")[-1] == 7)
    assert [int(code) for code in reported] == [0, 0, 0x99]
    assert values(gateway, "mode")[0] == "heat"
    assert values(gateway, "reset") == []
    assert gateway.controls == {}
