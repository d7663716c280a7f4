"""The bridge on a real port: found, lost, found again, and never in anyone's way."""

import contextlib
import json
import logging
import subprocess
import sys
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import pytest
from node.frames import encode_reading, encode_readings

from gateway.bridges.readings.reading_map import reading_map
from gateway.bridges.serial.serial_bridge import KIND
from gateway.bridges.serial.serial_settings import SerialSettings, port_name
from gateway.bridges.supervision.supervised import Backoff
from gateway.bridges.supervision.supervisor import Supervisor
from gateway.config.bridges import BridgeConfig
from gateway.counters import Counters
from gateway.mqtt.reason_codes import ReasonCode
from tests.support.clocks import ManualClock
from tests.support.disk.storage import open_store, until
from tests.support.nodes.bridges import Alarms, Broker, Disk, Gateway, MemoryFrames, Subscriptions
from tests.support.nodes.serial_line import SerialLine

TEMPERATURE = encode_reading("temperature", (215, -1), "°C")


def frame(sequence: int, boot: int = 7) -> bytes:
    return encode_readings("n1", boot, sequence, 1500, 0, 0, None, [TEMPERATURE])


@pytest.fixture
def gateway(
    broker: Broker, disk: Disk, frames: MemoryFrames, counters: Counters, clock: ManualClock
) -> Gateway:
    return Gateway(broker, disk, frames, counters, clock, Alarms(), Subscriptions(), {})


def plan(line: SerialLine, form: str = "frames", **settings: Any) -> BridgeConfig:
    return BridgeConfig(KIND, "ttyNODE", SerialSettings(port=line.port, format=form, **settings))


@contextlib.asynccontextmanager
async def running(gateway: Gateway, *plans: BridgeConfig) -> AsyncIterator[Supervisor]:
    supervisor = Supervisor(gateway.services)
    await supervisor.apply(plans)
    try:
        yield supervisor
    finally:
        await supervisor.close()


def state(counters: Counters) -> object:
    return counters.values["tidegate/serial/ttyNODE/state"]


async def opened(counters: Counters) -> None:
    await until(lambda: state(counters) == "open")


async def test_a_frame_in_is_a_message_out_and_an_acknowledgement_back(
    gateway: Gateway, line: SerialLine, broker: Broker, counters: Counters
) -> None:
    async with running(gateway, plan(line)):
        await opened(counters)
        line.send(frame(1))
        await until(lambda: bool(line.bodies()))
    assert broker.messages[0].topic == "sensors/n1/temperature"
    assert broker.messages[0].client_id == "serial:ttyNODE"
    assert line.bodies() == [bytes.fromhex("01 02 00 07000000 01000000")]


async def test_the_acknowledgement_leaves_with_the_commit_and_not_before(
    gateway: Gateway, line: SerialLine, disk: Disk, counters: Counters
) -> None:
    disk.waits = True
    async with running(gateway, plan(line)):
        await opened(counters)
        line.send(frame(1) + frame(2))
        await until(lambda: counters.count("tidegate/serial/readings") == 2)
        assert line.received() == b""
        disk.commit()
        await until(lambda: len(line.bodies()) == 2)


async def test_json_lines(
    gateway: Gateway, line: SerialLine, broker: Broker, counters: Counters
) -> None:
    async with running(gateway, plan(line, "json")):
        await opened(counters)
        line.send(b'ESP-ROM:esp32c3\r\n{"quantity":"temperature","val')
        line.send(b'ue":21.5}\r\n')
        await until(lambda: bool(broker.messages))
    assert broker.messages[0].topic == "sensors/ttyNODE/temperature"
    assert counters.count("tidegate/serial/text_lines") == 1


async def test_json_lines_of_the_configured_node(
    gateway: Gateway, line: SerialLine, broker: Broker, counters: Counters
) -> None:
    async with running(gateway, plan(line, "json", node="boiler")):
        await opened(counters)
        line.send(b'{"quantity":"temperature","value":21.5}\n')
        await until(lambda: bool(broker.messages))
    assert broker.messages[0].topic == "sensors/boiler/temperature"


async def test_lines_of_a_program_by_its_preset(
    gateway: Gateway, line: SerialLine, broker: Broker, counters: Counters
) -> None:
    clock = {"time": "2026-11-20 23:00:00"}  # of the program's own zone
    station = {"model": "WS90", "id": 7, "wind_max_m_s": 3.5, "battery_ok": 1, "mic": "CRC"}
    async with running(gateway, plan(line, "json", preset="rtl_433")):
        await opened(counters)
        line.send(json.dumps(clock | station).encode() + b"\n")
        await until(lambda: len(broker.messages) == 2)
    found = {topic: (each["value"], each["unit"]) for topic, each in broker.readings}
    assert found == {
        "sensors/WS90-7/wind_speed/gust": (3.5, "m/s"),
        "sensors/WS90-7/battery": (100, "%"),
    }
    assert counters.count("tidegate/serial/clock_errors") == 0


async def test_frames_between_garbage(
    gateway: Gateway, line: SerialLine, broker: Broker, counters: Counters
) -> None:
    noise = bytes(range(1, 256))
    async with running(gateway, plan(line)):
        await opened(counters)
        for sequence in range(1, 6):
            line.send(noise * 3 + frame(sequence) + frame(99)[:-7])
        await until(lambda: len(line.bodies()) == 5)
    assert len(broker.messages) == 5
    assert counters.count("tidegate/serial/garbage_bytes") >= 5 * len(noise) * 3


async def test_unplugged_and_plugged_in_as_another_device(
    gateway: Gateway, line: SerialLine, broker: Broker, counters: Counters
) -> None:
    async with running(gateway, plan(line)):
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
    gateway: Gateway, line: SerialLine, disk: Disk, counters: Counters
) -> None:
    disk.waits = True
    async with running(gateway, plan(line)):
        await opened(counters)
        line.send(frame(1))
        await until(lambda: counters.count("tidegate/serial/readings") == 1)
        line.unplug()
        await until(lambda: state(counters) == "waiting")
        disk.commit()
    assert counters.count("tidegate/serial/acknowledgements_dropped") == 1


async def test_a_port_that_does_not_exist_is_shown_and_found_when_it_comes(
    gateway: Gateway, line: SerialLine, counters: Counters, caplog: pytest.LogCaptureFixture
) -> None:
    line.unplug()
    caplog.set_level(logging.INFO)
    async with running(gateway, plan(line)):
        await until(lambda: "No such" in str(counters.values["tidegate/serial/ttyNODE/error"]))
        assert state(counters) == "waiting"
        line.plug()
        await opened(counters)
    assert [record.getMessage() for record in caplog.records] == [
        "serial ttyNODE: waiting: No such file or directory",
        "serial ttyNODE: open",
    ]


async def _run_once(line: SerialLine, broker: Broker, folder: Path) -> int:
    """Send frame 1 to a fresh bridge on the store in `folder`; return the duplicates it counts."""
    store = await open_store(folder)
    waiting: list[Callable[[], None]] = []
    disk = Disk()
    setattr(disk, "when_on_disk", waiting.append)  # noqa: B010 - until the store has settled
    kept = (store.node_frames, store.counters)
    gateway = Gateway(broker, disk, *kept, ManualClock(), Alarms(), Subscriptions(), {})
    async with running(gateway, plan(line)):
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
    [("/dev/ttyUSB0", "ttyUSB0"), ("/dev/serial/by-id/usb-Acme_C+_#1-if00", "usb-Acme_C___1-if00")],
)
def test_the_name_of_a_port_can_stand_in_a_topic(port: str, name: str) -> None:
    assert port_name(port) == name


async def test_a_port_is_read_within_two_seconds_of_its_plugging_however_long_it_was_away(
    gateway: Gateway, line: SerialLine, counters: Counters, monkeypatch: pytest.MonkeyPatch
) -> None:
    waits: list[float] = []
    following = Backoff.next

    def noted(backoff: Backoff) -> float:
        waits.append(following(backoff))
        return 0.001

    monkeypatch.setattr(Backoff, "next", noted)
    line.unplug()
    async with running(gateway, plan(line)):
        await until(lambda: len(waits) > 30)
        line.plug()
        await opened(counters)
    assert max(waits) <= 1.0


async def test_a_port_goes_on_after_a_fault_in_what_it_calls(
    gateway: Gateway, line: SerialLine, counters: Counters, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(_message: object) -> ReasonCode:
        raise OSError("not the port's")

    monkeypatch.setattr(gateway.broker, "publish", broken)
    async with running(gateway, plan(line)):
        await opened(counters)
        line.send(frame(1))
        await until(lambda: counters.values["tidegate/serial/ttyNODE/restarts"] == 1)
        assert "not the port's" in str(counters.values["tidegate/serial/ttyNODE/error"])
        await until(lambda: state(counters) == "open")


async def test_a_command_is_written_as_a_line(
    gateway: Gateway, line: SerialLine, counters: Counters
) -> None:
    async with running(gateway, plan(line, "json", node="boiler")):
        await opened(counters)
        reported = gateway.subscriptions.publish("sensors/boiler/command", b"on")
        reported += gateway.subscriptions.publish("sensors/boiler/command", b"a\nb")
        await until(lambda: line.received() == b"on\n")
        line.unplug()
        await until(lambda: state(counters) == "waiting")
        reported += gateway.subscriptions.publish("sensors/boiler/command", b"off")
    assert [hex(code) for code in reported] == ["0x0", "0x99", "0x83"]


async def test_raw_bytes(
    gateway: Gateway, line: SerialLine, broker: Broker, counters: Counters
) -> None:
    async with running(gateway, plan(line, "raw", node="modem", silence=0.0)):
        await opened(counters)
        line.send(b"\x00\xff\n")
        await until(lambda: bool(broker.messages))
    assert broker.messages[0].topic == "sensors/modem/raw"
    assert broker.messages[0].payload == b"\x00\xff\n"


async def test_a_logger_of_tables_with_tabs_and_commas(
    gateway: Gateway, line: SerialLine, broker: Broker, counters: Counters
) -> None:
    logger = plan(
        line,
        "csv",
        separator="\t",
        decimal=",",
        map=reading_map({"kessel": "temperature_c", "T2": False}),
    )
    async with running(gateway, logger):
        await opened(counters)
        line.send(
            b"\xef\xbb\xbfTime\tVorlauf\tkessel\tFeuchte [%]\tT2\t\r"
            b"DHT failed\tretrying\r"
            b"2025-11-21T15:46:40Z\t\t60,5\t48,2 %\t1\t\r"
            b"2025-11-21T15:46:41Z\t7\t\tnan\t\t\r"
            b"1\t2\r"
        )
        await until(lambda: counters.count("tidegate/serial/rejected") == 2)
    found = [(topic, each["value"], each.get("unit")) for topic, each in broker.readings]
    assert found == [
        ("sensors/ttyNODE/temperature", 60.5, "°C"),
        ("sensors/ttyNODE/Feuchte", 48.2, "%"),
        ("sensors/ttyNODE/Vorlauf", 7, None),
    ]
    assert broker.readings[0][1]["time"] == 1_763_740_000_000


async def test_readings_are_retained_where_the_configuration_says_so(
    gateway: Gateway, line: SerialLine, broker: Broker, counters: Counters
) -> None:
    async with running(gateway, plan(line, "csv", columns=("temp", "hum"), retain=True)):
        await opened(counters)
        line.send(b"21.5,40\n")
        await until(lambda: len(broker.messages) == 2)
    assert [(each.topic, each.retain) for each in broker.messages] == [
        ("sensors/ttyNODE/temperature", True),
        ("sensors/ttyNODE/humidity", True),
    ]


@pytest.mark.uncovered
def test_pyserial_is_imported_only_where_a_port_is_made() -> None:
    code = "import gateway.bridges.serial.serial_bridge, sys; sys.exit('serial' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
