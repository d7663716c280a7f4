"""A real Home Assistant core as judge of what it is told, over MQTT on loopback."""

import asyncio
import contextlib
import json
import subprocess
import time
from pathlib import Path
from typing import Any

import pytest

from gateway.bridges.readings.registry import QUANTITIES
from tests.bridges.modbus.test_modbus_bridge import serving
from tests.support.paho_clients import Publisher
from tests.support.ports import free_port
from tests.support.processes.gateway_process import GatewayProcess, tidegate

HOME = Path(__file__).parents[3] / ".tools/home-assistant"
CORE = Path(__file__).parents[2] / "support/home_assistant/core.py"

CONFIG = """
[gateway]
id = "barn"

[[homeassistant]]
offline_after = 2

[[modbus]]
name = "plc"
port = "tcp://127.0.0.1:{port}"
silence = 0
register = [
    {{ address = 0, quantity = "target_temperature", unit = "°C", scale = 0.1, writable = true, \
minimum = 5, maximum = 30, interval = 0.5 }},
    {{ address = 3, quantity = "mode", writable = true, options = {{ off = 0, heat = 230 }}, \
interval = 0.5 }},
    {{ address = 2, quantity = "reset", press = 7 }},
    {{ address = 2, quantity = "running", table = "coil", writable = true, interval = 0.5 }},
]
"""


class Assistant:
    """Home Assistant with its folder, connected to the gateway."""

    def __init__(self, folder: Path, port: int) -> None:
        folder.mkdir(exist_ok=True)
        (folder / "configuration.yaml").touch()
        with (folder / "log").open("a") as log:
            self._process = subprocess.Popen(
                [HOME / "python/python3.13", CORE, folder, str(port)],
                env={"PYTHONPATH": str(HOME / "packages")},
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=log,
                text=True,
            )

    def ask(self, do: str, **more: object) -> Any:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(json.dumps({"do": do, **more}) + "\n")
        self._process.stdin.flush()
        return json.loads(self._process.stdout.readline())

    def call(self, domain: str, service: str, entity: str, **data: object) -> None:
        self.ask("call", domain=domain, service=service, data={"entity_id": entity, **data})

    def stop(self) -> None:
        with contextlib.suppress(BrokenPipeError):
            self._process.communicate('{"do": "stop"}\n', 60)

    def wait(self, wanted: dict[str, object], seconds: float = 60) -> dict[str, Any]:
        """Return the states once they are as wanted; None means that there is none."""
        end = time.monotonic() + seconds
        while True:
            states: dict[str, Any] = self.ask("states")
            shown = {name: states.get(name, {}).get("state") for name in wanted}
            if shown == wanted or time.monotonic() > end:
                assert shown == wanted
                return states
            time.sleep(0.1)


class House:
    """A gateway and Home Assistant; readings are published as bridges publish them."""

    def __init__(self, folder: Path, modbus: int) -> None:
        self.folder = folder
        self.gateway = GatewayProcess(folder, CONFIG.format(port=modbus))
        self.gateway.start()
        self.assistant = Assistant(folder / "home", self.gateway.port)
        self.publisher = Publisher(self.gateway.port)

    def read(self, series: str, value: object, unit: str = "", **more: object) -> None:
        fields = {"value": value, **({"unit": unit} if unit else {}), **more}
        self.publisher.publish(f"sensors/{series}", json.dumps(fields).encode())

    def restart_assistant(self) -> None:
        self.assistant.stop()
        self.assistant = Assistant(self.folder / "home", self.gateway.port)

    def close(self) -> None:
        self.publisher.close()
        self.assistant.stop()
        self.gateway.stop()


def now_ms() -> int:
    return int(time.time() * 1000)


@pytest.mark.deep("make test-homeassistant", "TIDEGATE_HOMEASSISTANT")
@pytest.mark.timeout(280)
async def test_it_shows_what_the_house_measures(tmp_path: Path) -> None:
    port = free_port()
    async with serving(port):
        await asyncio.to_thread(_live, tmp_path, port)


@pytest.mark.deep("make test-homeassistant", "TIDEGATE_HOMEASSISTANT")
@pytest.mark.timeout(280)
def test_it_takes_every_quantity_in_every_unit(tmp_path: Path) -> None:
    """Home Assistant logs a class that does not fit its unit, its state class or its value."""
    house = House(tmp_path, free_port())
    try:
        count = 0
        for name, quantity in QUANTITIES.items():
            value: object = {"event": "press", "state": True}.get(quantity.kind.value, 5)
            for unit in ("", *quantity.units):
                house.read(f"{name}-{count}/{name}", value, unit)
                count += 1
        end = time.monotonic() + 100
        states, unknown = _own(house.assistant), [""]
        while (len(states) < count or unknown) and time.monotonic() < end:
            time.sleep(1)
            states = _own(house.assistant)
            unknown = [name for name, each in states.items() if each["state"] == "unknown"]
        log: list[str] = [line[:200] for line in house.assistant.ask("log")]
        assert (log, unknown, len(states)) == ([], [], count)
    finally:
        house.close()


def _own(assistant: Assistant) -> dict[str, dict[str, object]]:
    """Return the states but for those of the bus."""
    states: dict[str, dict[str, object]] = assistant.ask("states")
    return {name: each for name, each in states.items() if ".plc" not in name}


def _live(folder: Path, modbus: int) -> None:
    house = House(folder, modbus)
    try:
        _measure(house)
        _controls(house.assistant)
        _events(house)
        _outage_and_totals(house)
        _births(house)
        _silence_and_removal(house)
        log: list[str] = house.assistant.ask("log")
        # the connection was lost when the gateway was stopped
        assert [line for line in log if "mqtt.client: " not in line] == []
    finally:
        house.close()


def _measure(house: House) -> None:
    ours = house.assistant
    readings: list[tuple[str, object, str]] = [
        ("barn1/temperature", 21.5, "°C"),
        ("barn1/temperature/28ff641e8216047c", 60.25, "°C"),
        ("barn1/temperature/28ffa2118216030b", 20.5, "°C"),
        ("barn2/temperature", 5, "°C"),
        ("mains/power/l1", 100, "W"),
        ("mains/power/l2", 200, "W"),
        ("mains/energy", 1000.5, "kWh"),
        ("mains/voltage_l1", 230.2, "V"),
        ("mains/power_factor", 0.98, ""),
        ("a4c138112233/temperature", 19.5, "°C"),
        ("a4c138112233/opening", False, ""),
        ("a4c138112233/signal_strength", -60, "dBm"),
        ("mast/wind_direction", 270, "°"),
        ("mast/pm25", 3, "μg/m³"),
        ("mast/state_text", "calm", ""),
    ]
    for series, value, unit in readings:
        house.read(series, value, unit)
    states = ours.wait(
        {
            "sensor.barn1_temperature": "21.5",
            "sensor.barn1_temperature_28ff641e8216047c": "60.25",
            "sensor.barn1_temperature_28ffa2118216030b": "20.5",
            "sensor.barn2_temperature": "5",
            "sensor.mains_power_l1": "100",
            "sensor.mains_power_l2": "200",
            "sensor.mains_energy": "1000.5",
            "sensor.mains_voltage_l1": "230.2",
            "sensor.a4c138112233_temperature": "19.5",
            "binary_sensor.a4c138112233_opening": "off",
            "sensor.a4c138112233_signal_strength": "-60",
            "sensor.mast_wind_direction": "270",
            "sensor.mast_pm25": "3",
            "sensor.mast_state_text": "calm",
            "number.plc_target_temperature": "21.5",
            "select.plc_mode": "heat",
            "switch.plc_running": "off",
            "button.plc_reset": "unknown",
        }
    )
    classes = {name: each.get("device_class") for name, each in states.items()}
    assert classes["sensor.mains_voltage_l1"] == "voltage"
    assert states["sensor.mains_energy"]["state_class"] == "total_increasing"
    assert classes["binary_sensor.a4c138112233_opening"] == "opening"
    assert len(set(ours.ask("entities").values())) == len(readings) + 4


def _controls(ours: Assistant) -> None:
    ours.call("number", "set_value", "number.plc_target_temperature", value=18.5)
    ours.call("select", "select_option", "select.plc_mode", option="off")
    ours.call("switch", "turn_on", "switch.plc_running")
    ours.call("button", "press", "button.plc_reset")
    ours.wait(
        {
            "number.plc_target_temperature": "18.5",
            "select.plc_mode": "off",
            "switch.plc_running": "on",
        }
    )


def _events(house: House) -> None:
    for word in ("press", "double_press", "press"):
        house.read("remote/button", word)
    states = house.assistant.wait({"sensor.barn2_temperature": "5"})
    end = time.monotonic() + 30
    while states.get("event.remote_button", {}).get("event_type") != "press":
        assert time.monotonic() < end, states.get("event.remote_button")
        states = house.assistant.ask("states")
    assert states["event.remote_button"]["event_types"] == ["double_press", "press"]


def _outage_and_totals(house: House) -> None:
    """A backlog is no state, and no total falls because of it."""
    house.read("mains/energy", 1001.5, "kWh", time=now_ms())
    house.assistant.wait({"sensor.mains_energy": "1001.5"})
    for age in (60, 30, 4, 1):  # minutes
        house.read("mains/energy", 1000.0 - age, "kWh", time=now_ms() - age * 60_000)
    house.read("mains/energy", 0, "kWh", time=now_ms(), quality="fell")
    house.read("barn2/temperature", -127, "°C", quality="out_of_range")
    house.read("barn2/temperature", 6, "°C")
    house.assistant.wait({"sensor.mains_energy": "1001.5", "sensor.barn2_temperature": "6"})


def _births(house: House) -> None:
    """Home Assistant, and then the gateway, starts again: nothing is unknown for long."""
    house.restart_assistant()
    house.assistant.wait(
        {
            "sensor.barn2_temperature": "6",
            "sensor.mains_energy": "1001.5",
            "binary_sensor.a4c138112233_opening": "off",
            "switch.plc_running": "on",
        }
    )
    house.gateway.stop()
    house.gateway.start()
    house.assistant.wait({"switch.plc_running": "on", "number.plc_target_temperature": "18.5"})


def _silence_and_removal(house: House) -> None:
    for number in range(10):  # the usual gap is known after five seconds
        house.read("barn1/temperature", number, "°C")
        house.read("a4c138112233/opening", True)
        time.sleep(0.7)
    house.assistant.wait(
        {"sensor.barn1_temperature": "9", "binary_sensor.a4c138112233_opening": "on"}
    )
    house.assistant.wait(
        {"sensor.barn1_temperature": "unavailable", "binary_sensor.a4c138112233_opening": "on"}
    )
    forgotten = tidegate(
        "node", "forget", "barn1", f"mqtt://127.0.0.1:{house.gateway.port}", folder=house.folder
    )
    assert forgotten.returncode == 0, forgotten.stderr
    house.read("barn2/temperature", 7, "°C")
    house.assistant.wait(
        {
            "sensor.barn1_temperature": None,
            "sensor.barn1_temperature_28ff641e8216047c": None,
            "sensor.barn2_temperature": "7",
        }
    )
    assert "barn1" not in house.assistant.ask("devices")
