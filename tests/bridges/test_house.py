"""A house for a day: every series is complete and apart, for the fleet and in Home Assistant.

The broker's messages on `sensors/#` are those that an uplink sends.
"""

import json
from collections import defaultdict
from itertools import pairwise
from typing import Any

import pytest
from node.frames import encode_reading, encode_readings

from gateway.bridges.ble.ble_bridge import BleBridge
from gateway.bridges.ble.ble_settings import BleSettings
from gateway.bridges.ble.decoders import Advertisement
from gateway.bridges.discovery.homeassistant import HomeAssistant, HomeAssistantSettings
from gateway.bridges.modbus.modbus_bridge import ModbusBridge
from gateway.bridges.modbus.modbus_settings import ModbusSettings
from gateway.bridges.serial.serial_bridge import SerialBridge
from gateway.bridges.serial.serial_settings import SerialSettings
from gateway.config.reader import Reader
from tests.support.clocks import ManualClock
from tests.support.nodes.bridges import Gateway

BTHOME = "0000fcd2-0000-1000-8000-00805f9b34fb"
STEP = 300
STEPS = 86_400 // STEP
"""A day, in which everything measures every five minutes."""

AWAY = range(100, 112)
"""Steps in which the nodes' line is pulled out; they send their samples afterwards."""

RESTART = 150
"""The step before which the gateway starts again."""

GLITCH = 120
"""The step in which the meter says that it counted nothing."""

NODES = (("nodes", "barn1", 1), ("nodes", "barn2", 2), ("other", "barn1", 3))
"""Line, name and boot id: two of one name at two ports."""


class House:
    """Bridges with one gateway."""

    def __init__(self, clock: ManualClock, before: "House | None" = None) -> None:
        self.clock = clock
        self.gateway = Gateway.make(clock)
        self.kept: list[tuple[str, bytes]] = []
        """What the nodes have on their flash while nobody listens."""
        if before is not None:  # what is on disk
            stored = ("broker", "frames", "packet_counters", "series_labels", "retained")
            for name in stored:
                setattr(self.gateway, name, getattr(before.gateway, name))
            self._reported = before._reported
        self.assistant = HomeAssistant(HomeAssistantSettings(), self._host("homeassistant", "ha"))
        modbus = {
            "port": "tcp://192.0.2.1",
            "device": [
                {"map": "sdm630", "node": "mains"},
                {"map": "sdm120", "device": 2, "node": "heatpump"},
            ],
        }
        self.meters = Reader("t").read(ModbusSettings, modbus)
        self.bus: Any = ModbusBridge(self.meters, self._host("modbus", "bus"))
        names = [f"room{number}" for number in range(10)]
        listed = [
            {"address": f"A4:C1:38:00:00:{number:02X}", "node": name}
            for number, name in enumerate(names)
        ]
        settings = Reader("t").read(BleSettings, {"device": listed, "interval": 10})
        self.ble = BleBridge(settings, self._host("ble", "hci0"))
        self.lines: dict[str, Any] = {}
        for name, form in (("station", "json"), ("nodes", "frames"), ("other", "frames")):
            made = SerialSettings(port=f"/dev/{name}", format=form)
            self.lines[name] = SerialBridge(made, self._host("serial", name))

    def _host(self, kind: str, name: str) -> Any:
        return self.gateway.host(kind, name)

    def step(self, number: int) -> None:
        """Let everything measure once, but for what is broken just then."""
        if number % 40 < 30:  # the bus is pulled out for ten steps
            for each in self.meters.registers:
                value = min(each.address + number, 9_000)
                glitch = number == GLITCH and each.quantity == "energy"
                self.bus._on_words(each, each.words(0 if glitch else value))
        for room in range(10):
            if (room + number) % 7:  # a packet is lost now and then
                self._advertise(room, number)
        sensors: dict[str, dict[str, object]] = {"BME280": {"temp_c": 10 + number % 5, "hum": 60}}
        if number % 10 < 8:
            sensors["DS18B20-1"] = {"Id": "28FF641E8216047C", "temp_c": 55}
        sensors["DS18B20-2"] = {"Id": "28FFA2118216030B", "temp_c": 5 - number % 3}
        self._feed("station", json.dumps(sensors).encode() + b"\n")
        for line, node, boot in NODES:
            if line == "nodes" and number in AWAY:
                age = (AWAY.stop - number) * STEP * 1000
                self.kept.append((line, self._frame(node, boot, number, age)))
            else:
                self._feed(line, self._frame(node, boot, number))
        if number == AWAY.stop:
            for line, frame in self.kept:
                self._feed(line, frame)
        self.clock.step(STEP)
        self.assistant.check()
        self.assistant.publish_waiting()

    def _frame(self, node: str, boot: int, number: int, age: int = 0) -> bytes:
        names = ["temperature", "temperature/chip"]
        if number % 9:
            names += ["temperature/2861", "temperature/2862"]
        readings = [
            encode_reading(name, (100 * boot + place, -1), "°C") for place, name in enumerate(names)
        ]
        return encode_readings(node, boot, number + 1, 0, age, 0, None, readings)

    def _feed(self, line: str, data: bytes) -> None:
        self.lines[line]._intake.feed(data)
        self._tell()

    def _advertise(self, room: int, number: int) -> None:
        celsius = (1500 + 100 * room).to_bytes(2, "little")
        data = (
            b"\x40\x00" + bytes([number % 256]) + b"\x02" + celsius + b"\x11" + bytes([number % 2])
        )
        address = f"A4:C1:38:00:00:{room:02X}"
        now = self.clock.monotonic()
        self.ble.on_advertisement(Advertisement(address, None, -60, {BTHOME: data}, {}, [], now))

    def _tell(self) -> None:
        """Hand what was published to those who listen, as the broker does."""
        for message in self.gateway.broker.messages[self._reported :]:
            self._reported += 1
            if message.topic.startswith("sensors/"):
                payload = bytes(message.payload)
                self.gateway.subscriptions.publish(message.topic, payload)

    _reported = 0


def series_of(house: House) -> dict[str, list[dict[str, Any]]]:
    """What the fleet gets, by series."""
    found = defaultdict(list)
    for message in house.gateway.broker.messages:
        if message.topic.startswith("sensors/"):
            name = message.topic.removeprefix("sensors/")
            found[name].append(json.loads(message.payload))
    return found


@pytest.mark.uncovered
async def test_every_series_is_complete_and_apart(clock: ManualClock) -> None:
    house = House(clock)
    for number in range(STEPS):
        if number == RESTART:
            house = House(clock, house)
        house.step(number)
    house._tell()
    house.assistant.check()
    series = {
        name: [each["value"] for each in readings] for name, readings in series_of(house).items()
    }
    rooms = {f"room{number}" for number in range(10)}
    expected = {f"{room}/{quantity}" for room in rooms for quantity in BLE_SERIES}
    expected |= {each.topic("bus").removeprefix("sensors/") for each in house.meters.registers}
    expected |= {"station/temperature", "station/humidity"}
    expected |= {f"station/temperature/{each}" for each in ("28ff641e8216047c", "28ffa2118216030b")}
    names = ("temperature", "temperature/chip", "temperature/2861", "temperature/2862")
    expected |= {f"{node}/{name}" for node in ("barn1", "barn2") for name in names}
    expected |= {f"barn1/{name}" for name in APART}
    assert set(series) == expected
    for number in range(10):
        assert set(series[f"room{number}/temperature"]) == {15.0 + number}
        heard = sum((number + step) % 7 > 0 for step in range(STEPS))
        assert len(series[f"room{number}/temperature"]) == heard
    assert set(series["station/temperature/28ff641e8216047c"]) == {55}
    there = sum(step % 10 < 8 for step in range(STEPS))
    assert len(series["station/temperature/28ff641e8216047c"]) == there
    own = [series[f"barn1/{name}"] for name in names] + [series[f"barn1/{name}"] for name in APART]
    assert [set(values) for values in own] == [
        {round(10.0 * boot + place / 10, 1)} for boot in (1, 3) for place in range(4)
    ]
    both = sum(step % 9 > 0 for step in range(STEPS))
    for node in ("barn1", "barn2"):
        for name in names:
            assert len(series[f"{node}/{name}"]) == (both if name.endswith(("1", "2")) else STEPS)
    assert len(series["mains/voltage/l2"]) == sum(step % 40 < 30 for step in range(STEPS))
    _check_times(house)
    _check_totals(house)
    components = [
        each
        for topic, payload in house.gateway.retained.items()
        if topic.startswith("homeassistant/device/")
        for each in json.loads(payload)["components"].values()
    ]
    assert len(components) == len(expected)
    assert len({each["unique_id"] for each in components}) == len(expected)
    assert len({each["state_topic"] for each in components}) == len(expected)


def _check_times(house: House) -> None:
    """A sample that waited has its own time, and no two of a series have the same."""
    times = sorted(each["time"] for each in series_of(house)["barn2/temperature"])
    assert {after - before for before, after in pairwise(times)} == {STEP * 1000}


def _check_totals(house: House) -> None:
    """What Home Assistant is given of a total never falls, nor of anything goes back in time."""
    energy, times = [], []
    for message in house.gateway.broker.messages:
        if message.topic.endswith("_mains/energy"):
            energy.append(json.loads(message.payload)["value"])
        if message.topic.endswith("_barn2/temperature"):
            times.append(json.loads(message.payload)["time"])
    assert len(energy) > STEPS // 2
    assert energy == sorted(energy)
    assert times == sorted(times)
    marked = [each for each in series_of(house)["mains/energy"] if "quality" in each]
    assert [(each["value"], each["quality"]) for each in marked] == [(0, "fell")]


BLE_SERIES = ("temperature", "opening", "signal_strength")

APART = [
    "temperature/serial-other",
    *(f"temperature/{each}-serial-other" for each in ("chip", "2861", "2862")),
]
