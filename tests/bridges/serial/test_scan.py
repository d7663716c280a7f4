"""What is on a port is found by listening, on pseudo-terminals that say it again and again."""

import asyncio
import contextlib
import os
import tomllib
from collections.abc import AsyncIterator
from functools import reduce
from operator import xor
from pathlib import Path

import pytest

from gateway.bridges.kind import FoundTable, ScanOptions
from gateway.bridges.serial import scan
from gateway.bridges.serial.port import Line, SerialPort
from gateway.bridges.serial.scan import Detector, scan_ports
from gateway.bridges.serial.serial_settings import SerialSettings
from gateway.cli.bridges import scan_lines
from gateway.config.reader import Reader
from tests.bridges.serial.intake.node_frames import frame
from tests.support.nodes.serial_line import SerialLine
from tests.support.table import table

D0 = (
    b"/ESY5Q3DA1004 V3.04\r\n\r\n"
    b"1-0:1.8.0*255(00001234.5678*kWh)\r\n1-0:16.7.0*255(000230.50*W)\r\n!\r\n"
)
VEDIRECT = b"\r\nPID\t0xA053\r\nV\t12800\r\nI\t500\r\nChecksum\t"
VEDIRECT += bytes([-sum(VEDIRECT) & 0xFF])


def sentence(text: str) -> bytes:
    return b"$%s*%02X\r\n" % (text.encode(), reduce(xor, text.encode()))


FORMATS = [
    (frame(), {}, "node n1: temperature 21.5"),
    (D0, {"format": "d0"}, "energy 1234.5678 kWh"),
    (VEDIRECT, {"format": "vedirect"}, "voltage 12.8 V"),
    (
        sentence("HCHDM,238.5,M") + sentence("WIMWV,214.8,R,10.1,M,A"),
        {"format": "nmea"},
        "wind_speed_apparent 10.1 m/s",
    ),
    (
        b'{"model":"Nexus-TH","id":244,"temperature_C":21.5,"humidity":48}\n',
        {"format": "json", "node": "{model}-{id}"},
        "temperature 21.5 °C, humidity 48 %",
    ),
    (b"temp_c,humidity\n21.5,48\n", {"format": "csv", "separator": ","}, "temperature 21.5 °C"),
    (
        b"Temperatur;Humidity\n21,5;48,2\n",
        {"format": "csv", "separator": ";", "decimal": ","},
        "humidity 48.2 %",
    ),
    (
        b"21.5\t48.2\t1013\n",
        {"format": "csv", "separator": "\t", "columns": ["value_1", "value_2", "value_3"]},
        "name the columns",
    ),
]


@contextlib.asynccontextmanager
async def talking(line: SerialLine, data: bytes) -> AsyncIterator[None]:
    async def talk() -> None:
        while True:
            with contextlib.suppress(BlockingIOError):
                os.write(line.descriptor, data)
            await asyncio.sleep(0.02)

    task = asyncio.create_task(talk())
    yield
    task.cancel()


def settings_of(found: FoundTable) -> SerialSettings:
    """Return the settings that the gateway reads of a table as it is printed."""
    content = tomllib.loads("\n".join(scan_lines([found])))
    reader = Reader("tidegate.toml")
    settings: SerialSettings = reader.read(SerialSettings, content["serial"][0])
    assert not reader.mistakes
    return settings


@table(("data", "keys", "comment"), FORMATS)
async def test_formats_are_found(
    data: bytes, keys: dict[str, object], comment: str, tmp_path: Path
) -> None:
    line = SerialLine(tmp_path / "ttyNEW")
    line.plug()
    async with talking(line, data):
        said: list[str] = []
        (found,) = await scan_ports(ScanOptions(said.append, (line.port,), 1.0))
    line.close()
    settings_of(found)
    found_keys = {name: value for name, value in found.values.items() if name != "baud"}
    assert found_keys == {"port": line.port, **keys}
    assert comment in " ".join(found.comments)
    assert said[0] == f"{line.port}: listening at 115,200 baud"


async def test_what_nothing_fits_is_reported(
    line: SerialLine, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(scan, "BAUDS", (9_600, 19_200))
    reported: list[str] = []
    options = ScanOptions(reported.append, (line.port, "/dev/ttyNONE"), 0.1)
    async with talking(line, b"\xff\xfe noise, and more\n"):
        assert await scan_ports(options) == []
    assert reported[1] == f"{line.port}: listening at 19,200 baud"
    assert "bytes were received, and none of the formats fits them" in reported[2]
    assert reported[-1] == "/dev/ttyNONE: No such file or directory"
    reported.clear()
    await scan_ports(ScanOptions(reported.append, (line.port,), 0.01))
    line.unplug()
    assert reported


async def test_a_port_that_the_gateway_has_open_is_left_alone(line: SerialLine) -> None:
    port = await SerialPort.open(line.port, Line())
    reported: list[str] = []
    assert await scan_ports(ScanOptions(reported.append, (line.port,), 0.1)) == []
    assert reported[-1] == f"{line.port}: another program has it open"
    port.close()


async def test_without_a_port_every_adapter_is_listened_to(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(scan, "plugged_in", list)
    reported: list[str] = []
    assert await scan_ports(ScanOptions(reported.append)) == []
    assert reported == ["no USB serial port is plugged in; name a port to listen to another"]


def test_a_line_alone_is_a_guess_and_names_without_meaning_are_named() -> None:
    detector = Detector()
    assert detector.feed(b'{"t":21.5,"node":"barn"}\n') is None
    guess = detector.guess()
    assert guess is not None
    assert guess.keys == {"format": "json"}
    assert guess.comments == ("t 21.5", "define these in `map`: t")
    assert Detector().guess() is None
