"""A house: every series is complete and apart, at the broker and in Home Assistant's discovery."""

import json
from collections import defaultdict
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
MINUTES = 40

NODES = (("nodes", "barn1", 1), ("nodes", "barn2", 2), ("other", "barn1", 3))
"""Line, name and boot id: two of one name at two ports."""


class House:
    """Bridges with one gateway; a minute of it is a step of the clock."""

    def __init__(self, clock: ManualClock) -> None:
        self.clock = clock
        self.gateway = Gateway.make(clock)
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

    def minute(self, number: int) -> None:
        """Let everything measure once, but for what is broken just then."""
        if number % 40 < 30:  # the bus is pulled out for ten minutes
            for each in self.meters.registers:
                self.bus._on_words(each, each.words(min(each.address + number, 9_000)))
        for room in range(10):
            if (room + number) % 7:  # a packet is lost now and then
                self._advertise(room, number)
        sensors: dict[str, dict[str, object]] = {"BME280": {"temp_c": 10 + number % 5, "hum": 60}}
        if number % 10 < 8:
            sensors["DS18B20-1"] = {"Id": "28FF641E8216047C", "temp_c": 55}
        sensors["DS18B20-2"] = {"Id": "28FFA2118216030B", "temp_c": 5 - number % 3}
        self._feed("station", json.dumps(sensors).encode() + b"\n")
        for line, node, boot in NODES:
            self._feed(line, self._frame(node, boot, number))
        self.clock.step(60)
        self.assistant.check()

    def _frame(self, node: str, boot: int, number: int) -> bytes:
        names = ["temperature", "temperature/chip"]
        if number % 9:
            names += ["temperature/2861", "temperature/2862"]
        readings = [
            encode_reading(name, (100 * boot + place, -1), "°C") for place, name in enumerate(names)
        ]
        return encode_readings(node, boot, number + 1, 0, 0, 0, None, readings)

    def _feed(self, line: str, data: bytes) -> None:
        self.lines[line]._intake.feed(data)
        self._tell()

    def _advertise(self, room: int, number: int) -> None:
        celsius = (1500 + 100 * room).to_bytes(2, "little")
        data = b"\x40\x00" + bytes([number]) + b"\x02" + celsius + b"\x11" + bytes([number % 2])
        address = f"A4:C1:38:00:00:{room:02X}"
        now = self.clock.monotonic()
        self.ble.on_advertisement(Advertisement(address, None, -60, {BTHOME: data}, {}, [], now))

    def _tell(self) -> None:
        """Hand what was published to those who listen, as the broker does."""
        for message in self.gateway.broker.messages[self._told :]:
            self._told += 1
            if message.topic.startswith("sensors/"):
                payload = bytes(message.payload)
                self.gateway.subscriptions.publish(message.topic, payload)

    _told = 0


@pytest.mark.uncovered
async def test_every_series_is_complete_and_apart(clock: ManualClock) -> None:
    house = House(clock)
    for number in range(MINUTES):
        house.minute(number)
    house._tell()
    house.assistant.check()
    series = defaultdict(list)
    for message in house.gateway.broker.messages:
        if message.topic.startswith("sensors/"):
            name = message.topic.removeprefix("sensors/")
            series[name].append(json.loads(message.payload)["value"])
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
        assert len(series[f"room{number}/temperature"]) >= MINUTES * 6 // 7 - 1
    assert set(series["station/temperature/28ff641e8216047c"]) == {55}
    assert len(series["station/temperature/28ff641e8216047c"]) == MINUTES * 8 // 10
    own = [series[f"barn1/{name}"] for name in names] + [series[f"barn1/{name}"] for name in APART]
    assert [set(values) for values in own] == [
        {round(10.0 * boot + place / 10, 1)} for boot in (1, 3) for place in range(4)
    ]
    assert len(series["mains/voltage/l2"]) == MINUTES * 3 // 4
    components = [
        each
        for topic, payload in house.gateway.retained.items()
        if topic.startswith("homeassistant/device/")
        for each in json.loads(payload)["components"].values()
    ]
    assert len(components) == len(expected)
    assert len({each["unique_id"] for each in components}) == len(expected)
    assert len({each["state_topic"] for each in components}) == len(expected)


BLE_SERIES = ("temperature", "opening", "signal_strength")

APART = [
    "temperature/serial-other",
    *(f"temperature/{each}-serial-other" for each in ("chip", "2861", "2862")),
]
