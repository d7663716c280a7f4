"""A real pyserial port on a pseudo-terminal: bytes, the lock, the end, a full line."""

import asyncio
import errno
import os
from dataclasses import dataclass
from pathlib import Path

import pytest
from serial.tools import list_ports

from gateway.bridges.serial.port import READ_MAX, Line, PortError, SerialPort, find_device
from tests.support.disk.storage import until
from tests.support.nodes.serial_line import SerialLine


async def test_bytes_both_ways(line: SerialLine) -> None:
    port = await SerialPort.open(line.port, Line())
    line.send(b"\x00\x11\x13\x03\xff\n\r")
    assert await port.read() == b"\x00\x11\x13\x03\xff\n\r"
    assert port.write(b"\n\x00\x04")
    assert line.received() == b"\n\x00\x04"
    port.close()


async def test_reading_waits_for_bytes_without_holding_the_loop(line: SerialLine) -> None:
    port = await SerialPort.open(line.port, Line())
    reading = asyncio.create_task(port.read())
    await asyncio.sleep(0)
    assert not reading.done()
    line.send(b"x")
    assert await reading == b"x"
    port.close()


async def test_unplugging_ends_the_reading(line: SerialLine) -> None:
    port = await SerialPort.open(line.port, Line())
    reading = asyncio.create_task(port.read())
    await asyncio.sleep(0)
    line.unplug()
    with pytest.raises(PortError):
        await reading
    assert not port.write(b"x")
    port.close()


async def test_an_error_of_the_device_ends_the_reading(
    line: SerialLine, monkeypatch: pytest.MonkeyPatch
) -> None:
    def failing(_descriptor: int, _size: int) -> bytes:
        raise OSError(errno.EIO, "as USB adapters say it")

    port = await SerialPort.open(line.port, Line())
    line.send(b"x")
    monkeypatch.setattr(os, "read", failing)
    with pytest.raises(PortError, match="Input/output error"):
        await port.read()
    port.close()


async def test_a_line_that_nobody_hears_takes_no_more_and_nothing_waits(line: SerialLine) -> None:
    port = await SerialPort.open(line.port, Line())
    written = 0
    while port.write(b"x" * 1024):
        written += 1
        assert written < 1024, "the kernel takes everything"
    port.close()


async def test_a_second_opener_is_told_who_is_in_its_way(line: SerialLine) -> None:
    port = await SerialPort.open(line.port, Line())
    with pytest.raises(PortError, match="another program has it open"):
        await SerialPort.open(line.port, Line())
    port.close()
    (await SerialPort.open(line.port, Line())).close()


async def test_what_is_no_port(tmp_path: Path) -> None:
    with pytest.raises(PortError, match="No such file or directory"):
        await SerialPort.open(str(tmp_path / "ttyUSB9"), Line())
    (tmp_path / "file").touch()
    with pytest.raises(PortError, match="Inappropriate ioctl"):
        await SerialPort.open(str(tmp_path / "file"), Line())
    with pytest.raises(PortError, match="Is a directory"):
        await SerialPort.open(str(tmp_path), Line())


async def test_a_closed_port_leaves_no_reader_behind(line: SerialLine) -> None:
    port = await SerialPort.open(line.port, Line())
    reading = asyncio.create_task(port.read())
    await asyncio.sleep(0)
    reading.cancel()
    with pytest.raises(asyncio.CancelledError):
        await reading
    port.close()
    assert not asyncio.get_running_loop().remove_reader(port._descriptor)


async def test_what_nobody_reads_stays_with_the_kernel(line: SerialLine) -> None:
    port = await SerialPort.open(line.port, Line())
    piece = bytes(range(256))

    def is_full() -> bool:
        _write(line, piece)
        return len(port._unread) >= READ_MAX

    await until(is_full)
    assert not asyncio.get_running_loop().remove_reader(port._descriptor), "it is paused"
    assert len(port._unread) < 2 * READ_MAX
    assert set(await port.read()) == set(piece)
    _write(line, piece)
    assert await port.read()
    port.close()


def _write(line: SerialLine, data: bytes) -> int:
    try:
        return os.write(line.descriptor, data)
    except BlockingIOError:
        return 0


@dataclass
class Adapter:
    """What pyserial lists."""

    device: str
    vid: int | None = None
    pid: int | None = None
    serial_number: str | None = None


ADAPTERS = [
    Adapter("/dev/ttyS0"),
    Adapter("/dev/ttyUSB1", 0x0403, 0x6001, "A5"),
    Adapter("/dev/ttyUSB0", 0x0403, 0x6001, "B7"),
    Adapter("/dev/ttyACM0", 0x2E8A, 0x0005),
]

DEVICES = [
    ("/dev/ttyUSB9", "/dev/ttyUSB9"),
    ("usb:0403:6001:A5", "/dev/ttyUSB1"),
    ("usb:0403:6001", "/dev/ttyUSB0"),
    ("usb:2e8A:0005", "/dev/ttyACM0"),
]


def test_an_adapter_is_found_whatever_its_number(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(list_ports, "comports", lambda: ADAPTERS)
    assert [(port, find_device(port)) for port, _ in DEVICES] == DEVICES
    with pytest.raises(PortError, match="no adapter 0403:6001:C9 is plugged in"):
        find_device("usb:0403:6001:C9")
