"""Devices on a bus are found, and the map that fits: real sockets and serial lines."""

import struct
import tomllib
from dataclasses import dataclass, field

import pytest

from gateway.bridges.kind import FoundTable, ScanOptions
from gateway.bridges.modbus import scan
from gateway.bridges.modbus.modbus_settings import ModbusSettings
from gateway.bridges.modbus.scan import scan_buses
from gateway.cli.bridges import scan_lines
from gateway.config.reader import Reader
from tests.bridges.modbus.slaves import RtuLine, Slave, framed, tcp_slave
from tests.support.ports import free_port


@dataclass(kw_only=True)
class Meter(Slave):
    """Input registers with floats, as Eastron's meters have them; other registers are refused."""

    floats: dict[int, float] = field(default_factory=dict)
    words: dict[int, int] = field(default_factory=dict)
    table: int = 4

    def answer(self, body: bytes) -> bytes:
        start, count = struct.unpack(">HH", body[1:5])
        words = dict(self.words)
        for address, value in self.floats.items():
            words[address], words[address + 1] = struct.unpack(">HH", struct.pack(">f", value))
        wanted = range(start, start + count)
        if body[0] != self.table or not all(each in words for each in wanted):
            return bytes((body[0] | 0x80, 2))
        data = b"".join(words[each].to_bytes(2, "big") for each in wanted)
        return bytes((body[0], len(data))) + data


SDM120 = {
    0: 231.2,
    6: 1.5,
    12: 345.0,
    18: 350.0,
    24: 12.0,
    30: 0.98,
    70: 49.98,
    72: 1234.5,
    74: 3.5,
    76: 20.0,
    78: 1.0,
    84: 400.0,
    86: 300.0,
    88: 400.0,
    90: 2.0,
    92: 1.0,
    94: 0.5,
    258: 5.0,
    264: 6.0,
    342: 1300.0,
    344: 21.0,
}


def settings_of(found: list[FoundTable]) -> ModbusSettings:
    """Return the settings that the gateway reads of tables as they are printed."""
    (content,) = tomllib.loads("\n".join(scan_lines(found)))["modbus"]
    reader = Reader("tidegate.toml")
    settings: ModbusSettings = reader.read(ModbusSettings, content)
    assert not reader.mistakes
    return settings


async def test_a_meter_on_a_serial_line_is_found_with_its_map() -> None:
    meter = Meter(floats=SDM120)

    def hear(request: bytes) -> None:
        if request[0] == 7:
            line.send(framed(7, meter.answer(request[1:-2])))

    line = RtuLine(hear)
    reported: list[str] = []
    options = ScanOptions(reported.append, (line.path,), 0.05, range(5, 9))
    bus, device = await scan_buses(options)
    line.close()
    assert bus == FoundTable("modbus", {"port": line.path, "baud": 9_600, "parity": "none"})
    assert device.name == "modbus.device"
    assert device.values == {"map": "sdm120", "device": 7}
    assert device.comments[0] == "Eastron SDM120?"
    assert reported == [
        f"{line.path}: asking devices at 9,600 baud, parity none",
        f"{line.path}: devices 7",
    ]
    assert {each.quantity for each in settings_of([bus, device]).registers} >= {"voltage"}


async def test_a_device_on_a_network_that_answers_to_every_identifier_is_one() -> None:
    meter = Meter(words={0: 0, 1: 17, 2: 5}, table=3)
    reported: list[str] = []
    async with tcp_slave(meter) as place:
        bus, register = await scan_buses(ScanOptions(reported.append, (place,)))
    assert bus.values == {"port": place}
    assert register.name == "modbus.register"
    assert register.values == {
        "device": 1,
        "table": "holding",
        "address": 0,
        "quantity": "register_0",
    }
    assert register.comments == (
        "device 1 fits no included map: its manual says",
        "the device answers to every identifier",
        "what registers mean; this one has the value 0",
    )
    assert settings_of([bus, register]).registers[0].quantity == "register_0"


async def test_a_device_on_a_network_that_answers_to_one_identifier() -> None:
    meter = Meter(floats=SDM120, unit=3)
    async with tcp_slave(meter) as place:
        found = await scan_buses(ScanOptions(lambda _: None, (place,), 0.05))
    assert found[1].values == {"map": "sdm120", "device": 3}


async def test_what_does_not_answer_is_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(scan, "LINES", ((9_600, "none"),))
    line = RtuLine(lambda _request: None)
    reported: list[str] = []
    closed = f"tcp://127.0.0.1:{free_port()}"
    places = (line.path, closed, "/dev/ttyNONE")
    assert await scan_buses(ScanOptions(reported.append, places, 0.01, range(1, 3))) == []
    line.close()
    assert reported[1:3] == [f"{line.path}: none", f"{line.path}: no device answers"]
    assert reported[4] == f"{closed}: cannot be opened"
    assert reported[6].startswith("/dev/ttyNONE: ")
    monkeypatch.setattr(scan, "plugged_in", list)
    assert await scan_buses(ScanOptions(reported.append)) == []
    assert reported[-1].startswith("no USB serial port is plugged in")
