"""The bridge on a real port: found, lost, found again, and never in anyone's way."""

import asyncio
import contextlib
import logging
import subprocess
import sys
from collections.abc import AsyncIterator, Callable
from pathlib import Path

import pytest
from node.frames import encode_reading, encode_readings

from gateway.bridges.serial import serial_bridge
from gateway.bridges.serial.serial_bridge import SerialBridge, port_name
from gateway.bridges.serial.serial_port import PortError, SerialPort
from gateway.counters import Counters
from gateway.mqtt.reason_codes import ReasonCode
from tests.support.bridges import Broker, Disk, MemoryFrames, Settings
from tests.support.clocks import ManualClock
from tests.support.serial_line import SerialLine
from tests.support.storage import open_store, until

TEMPERATURE = encode_reading("temperature", (215, -1), "°C")


def frame(sequence: int, boot: int = 7) -> bytes:
    return encode_readings("n1", boot, sequence, 1500, 0, 0, None, [TEMPERATURE])


@pytest.fixture
def make(
    line: SerialLine,
    broker: Broker,
    disk: Disk,
    frames: MemoryFrames,
    counters: Counters,
    clock: ManualClock,
) -> Callable[..., SerialBridge]:
    def make(form: str = "frames", node: str | None = None) -> SerialBridge:
        return SerialBridge(
            Settings(line.port, form, node=node),
            publish=broker.publish,
            when_on_disk=disk.when_on_disk,
            frames=frames,
            counters=counters,
            clock=clock,
        )

    return make


@contextlib.asynccontextmanager
async def running(bridge: SerialBridge) -> AsyncIterator[None]:
    task = asyncio.create_task(bridge.run())
    try:
        yield
    finally:
        task.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await task


def state(counters: Counters) -> object:
    return counters.values["tidegate/serial/ttyNODE/state"]


async def opened(counters: Counters) -> None:
    await until(lambda: state(counters) == "open")


async def test_a_frame_in_is_a_message_out_and_an_acknowledgement_back(
    make: Callable[..., SerialBridge], line: SerialLine, broker: Broker, counters: Counters
) -> None:
    async with running(make()):
        await opened(counters)
        line.send(frame(1))
        await until(lambda: bool(line.bodies()))
    assert broker.messages[0].topic == "sensors/n1/temperature"
    assert broker.messages[0].client_id == "serial:ttyNODE"
    assert line.bodies() == [bytes.fromhex("01 02 00 07000000 01000000")]


async def test_the_acknowledgement_leaves_with_the_commit_and_not_before(
    make: Callable[..., SerialBridge], line: SerialLine, disk: Disk, counters: Counters
) -> None:
    disk.waits = True
    async with running(make()):
        await opened(counters)
        line.send(frame(1) + frame(2))
        await until(lambda: counters.count("tidegate/serial/readings") == 2)
        assert line.heard() == b""
        disk.commit()
        await until(lambda: len(line.bodies()) == 2)


async def test_json_lines(
    make: Callable[..., SerialBridge], line: SerialLine, broker: Broker, counters: Counters
) -> None:
    async with running(make("json")):
        await opened(counters)
        line.send(b'ESP-ROM:esp32c3\r\n{"quantity":"temperature","val')
        line.send(b'ue":21.5}\r\n')
        await until(lambda: bool(broker.messages))
    assert broker.messages[0].topic == "sensors/ttyNODE/temperature"
    assert counters.count("tidegate/serial/garbage_bytes") == len("ESP-ROM:esp32c3")


async def test_json_lines_of_the_configured_node(
    make: Callable[..., SerialBridge], line: SerialLine, broker: Broker, counters: Counters
) -> None:
    async with running(make("json", node="boiler")):
        await opened(counters)
        line.send(b'{"quantity":"temperature","value":21.5}\n')
        await until(lambda: bool(broker.messages))
    assert broker.messages[0].topic == "sensors/boiler/temperature"


async def test_frames_between_garbage(
    make: Callable[..., SerialBridge], line: SerialLine, broker: Broker, counters: Counters
) -> None:
    noise = bytes(range(1, 256))
    async with running(make()):
        await opened(counters)
        for sequence in range(1, 6):
            line.send(noise * 3 + frame(sequence) + frame(99)[:-7])
        await until(lambda: len(line.bodies()) == 5)
    assert len(broker.messages) == 5
    assert counters.count("tidegate/serial/garbage_bytes") >= 5 * len(noise) * 3


async def test_unplugged_and_plugged_in_as_another_device(
    make: Callable[..., SerialBridge], line: SerialLine, broker: Broker, counters: Counters
) -> None:
    async with running(make()):
        await opened(counters)
        line.send(frame(1) + frame(2)[:20])
        await until(lambda: len(broker.messages) == 1)
        line.unplug()
        await until(lambda: state(counters) == "waiting")
        await until(lambda: "No such" in str(counters.values["tidegate/serial/ttyNODE/error"]))
        line.plug()
        await opened(counters)
        assert counters.values["tidegate/serial/ttyNODE/error"] == ""
        line.send(frame(2))
        await until(lambda: bool(line.bodies()))
    assert len(broker.messages) == 2


async def test_an_acknowledgement_for_a_device_that_is_gone_is_dropped_and_counted(
    make: Callable[..., SerialBridge], line: SerialLine, disk: Disk, counters: Counters
) -> None:
    disk.waits = True
    async with running(make()):
        await opened(counters)
        line.send(frame(1))
        await until(lambda: counters.count("tidegate/serial/readings") == 1)
        line.unplug()
        await until(lambda: state(counters) == "waiting")
        disk.commit()
    assert counters.count("tidegate/serial/acknowledgements_dropped") == 1


async def test_a_port_that_does_not_exist_is_shown_and_found_when_it_comes(
    make: Callable[..., SerialBridge],
    line: SerialLine,
    counters: Counters,
    caplog: pytest.LogCaptureFixture,
) -> None:
    line.unplug()
    caplog.set_level(logging.INFO)
    async with running(make()):
        await until(lambda: "No such" in str(counters.values["tidegate/serial/ttyNODE/error"]))
        assert state(counters) == "waiting"
        line.plug()
        await opened(counters)
    assert [record.getMessage() for record in caplog.records] == [
        f"serial {line.port}: waiting for the port: No such file or directory",
        f"serial {line.port}: open",
    ]


async def test_each_reason_to_wait_is_logged_once(
    make: Callable[..., SerialBridge],
    line: SerialLine,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    tries: list[str] = []

    async def refused(path: str, _baud: int) -> SerialPort:
        tries.append(path)
        raise PortError("no such thing" if len(tries) < 4 else "another thing")

    monkeypatch.setattr(serial_bridge, "RETRY_FIRST", 0.001)
    monkeypatch.setattr(SerialPort, "open", refused)
    async with running(make()):
        await until(lambda: len(tries) == 6)
    assert [record.getMessage() for record in caplog.records] == [
        f"serial {line.port}: waiting for the port: no such thing",
        f"serial {line.port}: waiting for the port: another thing",
    ]


async def test_a_fault_in_what_it_calls_is_not_taken_for_a_lost_port(
    line: SerialLine, disk: Disk, frames: MemoryFrames, counters: Counters, clock: ManualClock
) -> None:
    def broken(_message: object) -> ReasonCode:
        raise OSError("not the port's")

    bridge = SerialBridge(
        Settings(line.port),
        publish=broken,
        when_on_disk=disk.when_on_disk,
        frames=frames,
        counters=counters,
        clock=clock,
    )
    task = asyncio.create_task(bridge.run())
    await opened(counters)
    line.send(frame(1))
    with pytest.raises(OSError, match="not the port's"):
        await task


async def _run_once(line: SerialLine, broker: Broker, folder: Path) -> int:
    """Send frame 1 to a fresh bridge on the store in `folder`; return the duplicates it counts."""
    store = await open_store(folder)
    waiting: list[Callable[[], None]] = []
    bridge = SerialBridge(
        Settings(line.port),
        publish=broker.publish,
        when_on_disk=waiting.append,
        frames=store.node_frames,
        counters=store.counters,
        clock=ManualClock(),
    )
    async with running(bridge):
        await opened(store.counters)
        answers = len(line.bodies())
        line.send(frame(1))
        await until(lambda: bool(waiting))
        await store.settle()
        waiting.pop()()
        await until(lambda: len(line.bodies()) == answers + 1)
    await store.close()
    return store.counters.count("tidegate/serial/duplicates")


async def test_a_frame_repeated_after_a_restart_is_dropped_and_acknowledged(
    line: SerialLine, broker: Broker, tmp_path: Path
) -> None:
    assert await _run_once(line, broker, tmp_path) == 0
    assert await _run_once(line, broker, tmp_path) == 1
    assert len(broker.messages) == 1


@pytest.mark.parametrize(
    ("port", "name"),
    [
        ("/dev/ttyUSB0", "ttyUSB0"),
        ("/dev/serial/by-id/usb-Acme_C+_#1-if00", "usb-Acme_C___1-if00"),
    ],
)
def test_the_name_of_a_port_can_stand_in_a_topic(port: str, name: str) -> None:
    assert port_name(port) == name


def test_pyserial_is_imported_only_where_a_port_is_made() -> None:
    code = "import gateway.bridges.serial.serial_bridge, sys; sys.exit('serial' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


class ScriptedPort(SerialPort):
    """A port that can be opened, gives these bytes, and is lost."""

    def __init__(self, *pieces: bytes) -> None:
        self.pieces = list(pieces)

    async def read(self) -> bytes:
        if not self.pieces:
            raise PortError("unplugged")
        return self.pieces.pop(0)

    def close(self) -> None:
        """Do nothing: there is no device."""


async def test_the_retry_grows_until_the_device_gives_data(
    make: Callable[..., SerialBridge], monkeypatch: pytest.MonkeyPatch
) -> None:
    ports = [ScriptedPort(), ScriptedPort(), ScriptedPort(b"\0"), *(ScriptedPort(),) * 20]
    delays: list[float] = []

    async def opened_next(_path: str, _baud: int) -> SerialPort:
        return ports.pop(0)

    async def noted(seconds: float) -> None:
        delays.append(seconds)
        if not ports:
            raise asyncio.CancelledError

    monkeypatch.setattr(SerialPort, "open", opened_next)
    monkeypatch.setattr(asyncio, "sleep", noted)
    with contextlib.suppress(asyncio.CancelledError):
        await make().run()
    assert delays[:4] == [0.25, 0.3125, 0.25, 0.3125]  # to be opened is not enough to begin anew
    assert max(delays) == delays[-1] == 5.0
