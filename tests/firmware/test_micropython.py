"""The node's files under a real MicroPython: the same bytes, a real line, a board's main.py."""

import asyncio
import contextlib
import json
import os
import subprocess
import sys
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest
from node.starts import _FAILED_MAX

from gateway.bridges.serial.serial_bridge import SerialBridge
from gateway.bridges.serial.serial_settings import SerialSettings
from gateway.counters import Counters
from tests.firmware.scripts.bthome_vectors import KEY
from tests.firmware.test_bthome import Receiver
from tests.support.clocks import ManualClock
from tests.support.disk.storage import until
from tests.support.nodes import micropython as interpreter
from tests.support.nodes.bridges import Broker, Gateway
from tests.support.nodes.micropython import FIRMWARE
from tests.support.nodes.serial_line import SerialLine

SCRIPTS = Path(__file__).parent / "scripts"
GROWTH_MAX = 32 * 1024
"""Bytes that a node may take more under attack: the interpreter of filters, four programs and what
waits to be sent. Words have 64 bits here."""

pytestmark = pytest.mark.micropython


@pytest.fixture(scope="session")
def expected() -> str:
    """What CPython prints for the vectors."""
    done = subprocess.run(
        [sys.executable, str(SCRIPTS / "node_vectors.py")],
        env={"PYTHONPATH": str(FIRMWARE), "PYTHONDONTWRITEBYTECODE": "1"},
        capture_output=True,
        text=True,
        check=True,
        timeout=60,
    )
    assert done.stdout.count("\n") > 300
    return done.stdout


def test_both_pythons_give_the_same_bytes(micropython: str, expected: str) -> None:
    assert interpreter.run(micropython, SCRIPTS / "node_vectors.py") == expected


def test_the_compiled_files_give_the_same_bytes(
    micropython: str, expected: str, tmp_path: Path
) -> None:
    for source in (FIRMWARE / "node").glob("*.py"):
        interpreter.compile_to(tmp_path, source)
    assert interpreter.run(micropython, SCRIPTS / "node_vectors.py", modules=tmp_path) == expected


def test_drivers_that_count_with_floats_give_the_same(micropython: str) -> None:
    script = SCRIPTS / "float_drivers.py"
    done = subprocess.run(
        [sys.executable, str(script)],
        env={"PYTHONPATH": str(FIRMWARE), "PYTHONDONTWRITEBYTECODE": "1"},
        capture_output=True,
        text=True,
        check=True,
        timeout=60,
    )
    assert "('distance', (1000, 0))" in done.stdout
    assert interpreter.run(micropython, script) == done.stdout


def test_ten_minutes_without_a_cable_lose_nothing(micropython: str, tmp_path: Path) -> None:
    for arguments in ((), (str(tmp_path / "spill"),)):
        reported = interpreter.run(micropython, SCRIPTS / "outage.py", *arguments).splitlines()
        assert reported[0] == "dropped 0 missing []", arguments
        assert reported[1] == "grown by less than 16 KiB: True", arguments
    assert list((tmp_path / "spill").iterdir()) == []


@pytest.mark.parametrize("seed", range(int(os.environ.get("TIDEGATE_HOSTILE_HOSTS", "2"))))
def test_a_hostile_host_does_not_keep_a_node_from_sampling(micropython: str, seed: int) -> None:
    """Random bytes, frames again and in any order, orders and programs of any kind."""
    script = SCRIPTS / "hostile.py"
    reported = interpreter.run(micropython, script, str(seed), "2000").splitlines()
    assert reported[0] == "kept sampling: True installed: True"
    assert reported[1].startswith("heard: True grown by ")
    assert int(reported[1].split()[-1]) < GROWTH_MAX


def test_power_that_fails_at_any_write_loses_nothing_of_the_flash(micropython: str) -> None:
    """On littlefs: what was written whole is sent by the next start, once, in its order."""
    lost, cuts = interpreter.run(micropython, SCRIPTS / "power_cut.py", "1").splitlines()
    assert lost == "lost [] repeated 0"
    assert int(cuts.split()[0]) > 60


@pytest.fixture
def line(tmp_path: Path) -> Iterator[SerialLine]:
    line = SerialLine(tmp_path / "ttyNODE")
    line.plug()
    yield line
    line.close()


@contextlib.contextmanager
def board(
    micropython: str, script: str, line: SerialLine, *arguments: str
) -> Iterator[subprocess.Popen[bytes]]:
    """Run a script whose standard input and output are the node's end of `line`."""
    process = subprocess.Popen(
        [micropython, str(SCRIPTS / script), *arguments],
        env=interpreter.environment(FIRMWARE),
        stdin=line.descriptor,
        stdout=line.descriptor,
        stderr=subprocess.PIPE,
    )
    try:
        yield process
    finally:
        process.kill()
        process.communicate(timeout=60)


def make_bridge(line: SerialLine, broker: Broker, counters: Counters) -> SerialBridge:
    gateway = Gateway.make(ManualClock())
    gateway.broker, gateway.counters = broker, counters
    return SerialBridge(SerialSettings(port=line.port), gateway.host("serial", "ttyNODE"))


async def test_a_node_and_the_gateway_on_a_real_line(micropython: str, line: SerialLine) -> None:
    broker, counters = Broker(), Counters()
    bridge = asyncio.create_task(make_bridge(line, broker, counters).run())
    with board(micropython, "line.py", line):
        await until(lambda: counters.count("tidegate/serial/frames") >= 20)
    bridge.cancel()
    with contextlib.suppress(asyncio.CancelledError):
        await bridge
    topics = [topic for topic, _ in broker.readings[:3]]
    assert topics == [f"sensors/mp1/{name}" for name in ("temperature", "humidity", "pressure")]
    assert broker.readings[0][1]["value"] == 21.0
    # More frames than the window holds: the node heard its acknowledgements.
    assert counters.count("tidegate/serial/crc_errors") == 0


async def test_commands_on_a_real_line(micropython: str, line: SerialLine) -> None:
    gateway = Gateway.make(ManualClock())
    bridge = SerialBridge(SerialSettings(port=line.port), gateway.host("serial", "ttyNODE"))
    running = asyncio.create_task(bridge.run())
    orders = [
        {"command": "clock"},
        {"command": "identify", "seconds": 7},
        {"command": "interval", "seconds": 0.2},
        {"command": "interval", "seconds": 0.01},
        {"command": "read"},
    ]
    with board(micropython, "line.py", line) as process:
        await until(lambda: bool(gateway.subscriptions.receivers))
        for order in orders:
            gateway.subscriptions.publish("sensors/mp1/command", json.dumps(order).encode())
        await until(lambda: len(answers(gateway)) == len(orders))
        gateway.subscriptions.publish("sensors/mp1/command", b'{"command":"restart"}')
        assert await asyncio.to_thread(process.wait, 60) == 3
        assert process.stderr is not None
        assert process.stderr.readline() == b"identify 7\n"
    running.cancel()
    with contextlib.suppress(asyncio.CancelledError):
        await running
    assert sorted(each["status"] for each in answers(gateway)) == [*["done"] * 5, "refused"]


async def test_a_filter_outlives_node_cable_and_gateway(
    micropython: str, line: SerialLine, tmp_path: Path
) -> None:
    """Install it, kill the node, the cable and the bridge, and see it filter all the same."""
    gateway = Gateway.make(ManualClock())
    orders: list[dict[str, object]] = [
        {"quantity": name, "version": 3, "where": "value > 1000000", "guard": 0}
        for name in ("temperature", "humidity", "pressure")
    ]
    orders.append({"quantity": "pressure", "version": 4, "program": "0132"})
    orders.append({"quantity": "pressure", "version": 2, "where": "value > 3"})
    with board(micropython, "line.py", line, str(tmp_path / "programs")):
        async with bridged(line, gateway):
            await until(lambda: bool(gateway.subscriptions.receivers))
            for order in orders:
                payload = json.dumps({"command": "install", **order}).encode()
                gateway.subscriptions.publish("sensors/mp1/command", payload)
            await until(lambda: len(answers(gateway)) == len(orders))
    line.unplug()
    line.plug()
    assert [each["status"] for each in answers(gateway)] == [*["done"] * 3, *["refused"] * 2]
    after = Gateway.make(ManualClock())
    with board(micropython, "line.py", line, str(tmp_path / "programs")):
        async with bridged(line, after):
            await until(lambda: len(after.broker.readings) >= 2)
            # It samples on: the next heartbeat would say so, and so does a command.
            after.subscriptions.publish("sensors/mp1/command", b'{"command":"read"}')
            await until(lambda: bool(answers(after)))
    topics = [topic for topic, _ in after.broker.readings if not topic.endswith("/answer")]
    assert topics == ["sensors/mp1/suppressed", "sensors/mp1/filter"]
    assert after.broker.readings[0][1]["value"] == after.figure("serial/ttyNODE/suppressed") == 3
    assert after.broker.readings[1][1]["value"] == 3


@contextlib.asynccontextmanager
async def bridged(line: SerialLine, gateway: Gateway) -> AsyncIterator[None]:
    """Run a gateway's bridge on `line`."""
    bridge = SerialBridge(SerialSettings(port=line.port), gateway.host("serial", "ttyNODE"))
    running = asyncio.create_task(bridge.run())
    try:
        yield
    finally:
        running.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await running


def answers(gateway: Gateway) -> list[dict[str, str]]:
    messages = gateway.broker.messages
    return [json.loads(each.payload) for each in messages if each.topic.endswith("/answer")]


async def test_main_on_a_board(micropython: str, line: SerialLine, tmp_path: Path) -> None:
    sensors = [{"driver": "none"}, {"pin": 4}, {"driver": "simulated"}]
    (tmp_path / "settings.json").write_text(json.dumps({"link": "uart", "sensors": sensors}))
    broker, counters = Broker(), Counters()
    bridge = asyncio.create_task(make_bridge(line, broker, counters).run())
    with board(micropython, "board.py", line, str(tmp_path)) as process:
        await until(lambda: bool(broker.messages))
        assert process.stderr is not None
        reported = [process.stderr.readline() for _ in range(2)]
        assert sorted(reported) == [b"UART 1 115200 512\n", b"watched for 8000 ms\n"]
    bridge.cancel()
    with contextlib.suppress(asyncio.CancelledError):
        await bridge
    assert broker.messages[0].topic == "sensors/node-01abff/temperature"


async def test_a_board_whose_sensor_is_broken_hears_commands(
    micropython: str, line: SerialLine, tmp_path: Path
) -> None:
    settings = {"link": "uart", "name": "mp1", "sensors": [{"driver": "none"}]}
    (tmp_path / "settings.json").write_text(json.dumps(settings))
    gateway = Gateway.make(ManualClock())
    async with bridged(line, gateway):
        with board(micropython, "board.py", line, str(tmp_path)):
            await until(lambda: bool(gateway.subscriptions.receivers))
            gateway.subscriptions.publish("sensors/mp1/command", b'{"command":"read"}')
            await until(lambda: bool(answers(gateway)))
    assert [each["status"] for each in answers(gateway)] == ["done"]
    assert gateway.broker.readings[0][0] == "sensors/mp1/sensor_failures"


async def test_a_board_that_fails_again_and_again_hears_commands(
    micropython: str, line: SerialLine, tmp_path: Path
) -> None:
    """Its driver raises what no driver may; the start in safe mode leaves it alone."""
    sensors = [{"driver": "simulated", "seed": "no number"}]
    settings = {"link": "uart", "name": "mp1", "sensors": sensors, "interval_ms": "never"}
    folder = tmp_path / "a"
    folder.mkdir()
    (folder / "settings.json").write_text(json.dumps(settings))
    for _ in range(_FAILED_MAX):
        with board(micropython, "board.py", line, str(folder)) as process:
            assert await asyncio.to_thread(process.wait, 60) == 1
    gateway = Gateway.make(ManualClock())
    async with bridged(line, gateway):
        with board(micropython, "board.py", line, str(folder)):
            await until(lambda: bool(gateway.subscriptions.receivers))
            gateway.subscriptions.publish("sensors/mp1/command", b'{"command":"clock"}')
            await until(lambda: bool(answers(gateway)))
        assert list(gateway.alarms.raised) == ["node-mp1"]
    assert [each["status"] for each in answers(gateway)] == ["done"]
    reported = {topic: payload["value"] for topic, payload in gateway.broker.readings[:2]}
    assert reported == {"sensors/mp1/failed_starts": _FAILED_MAX, "sensors/mp1/safe_mode": True}
    assert gateway.figure("serial/ttyNODE/safe_mode") == 1


async def test_a_board_advertises_what_it_sends(
    micropython: str, line: SerialLine, tmp_path: Path
) -> None:
    """Its frames go over the cable as well; the gateway's decoder reads the advertisements."""
    folder = tmp_path / "a"
    folder.mkdir()
    settings = {"link": "ble", "name": "mp1", "interval_ms": 100, "key": KEY.hex()}
    (folder / "settings.json").write_text(json.dumps(settings))
    reported: list[list[bytes]] = []
    with board(micropython, "board.py", line, str(folder)) as process:
        assert process.stderr is not None
        while len(reported) < 3:
            words = process.stderr.readline().split()
            reported += [words] if words[0] == b"500000" else []
    assert reported[0][2:] == [b"0409" + b"mp1".hex().encode(), b"False"]
    receiver = Receiver(KEY)
    heard = [receiver.hear(bytes.fromhex(words[1].decode())) for words in reported]
    assert {name for name, *_ in heard[-1]} == {"temperature", "humidity", "pressure"}
    assert (tmp_path / "counter").read_text() == "8192"
