"""The bridge with pymodbus' own server, over TCP and a pair of pseudo-terminals."""

import asyncio
import contextlib
import os
import threading
import tty
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import pytest
from pymodbus import FramerType
from pymodbus.server import ModbusSerialServer, ModbusTcpServer
from pymodbus.simulator import DataType, SimData, SimDevice

from gateway.bridges.modbus.modbus_bridge import KIND, WRITES_MAX
from gateway.bridges.modbus.modbus_settings import ModbusSettings
from gateway.bridges.modbus.register import Register
from gateway.bridges.supervision.supervisor import Supervisor
from gateway.config.bridges import BridgeConfig
from tests.support.disk.storage import until
from tests.support.nodes.bridges import Gateway
from tests.support.ports import free_port

REGISTERS: list[dict[str, Any]] = [
    {"address": 0, "quantity": "temperature", "scale": 0.1, "interval": 0.05},
    {"address": 1, "quantity": "power", "type": "float32", "table": "input", "interval": 0.05},
    {"address": 3, "quantity": "voltage", "writable": True, "interval": 0.05, "deadband": 5},
    {"address": 2, "quantity": "running", "table": "coil", "writable": True, "interval": 0.05},
    {"address": 0, "quantity": "count", "device": 9, "interval": 0.05},
]
"""Device 9 is not there."""


def device(number: int = 1) -> SimDevice:
    bits = DataType.BITS
    words = DataType.REGISTERS
    return SimDevice(
        number,
        (
            [SimData(0, 16, False, bits)],
            [SimData(0, 16, False, bits)],
            [SimData(0, values=[215, 0, 0, 230], datatype=words)],
            [SimData(0, values=[0, 0x41AC, 0, 0], datatype=words)],
        ),
    )


@contextlib.asynccontextmanager
async def serving(port: int) -> AsyncIterator[ModbusTcpServer]:
    server = ModbusTcpServer([device()], address=("127.0.0.1", port), ignore_missing_devices=True)
    task = asyncio.create_task(server.serve_forever())
    await asyncio.sleep(0)
    try:
        yield server
    finally:
        await server.shutdown()  # type: ignore[no-untyped-call]
        await task


@contextlib.asynccontextmanager
async def bridging(gateway: Gateway, port: str, **settings: Any) -> AsyncIterator[None]:
    registers = tuple(Register(**each) for each in settings.pop("register", REGISTERS))
    supervisor = Supervisor(gateway.services)
    configured = ModbusSettings(port=port, register=registers, **settings)
    await supervisor.apply([BridgeConfig(KIND, "plc", configured)])
    try:
        yield
    finally:
        await supervisor.close()


@pytest.fixture
def gateway() -> Gateway:
    return Gateway.make()


def values(gateway: Gateway, quantity: str) -> list[object]:
    topic = f"sensors/plc/{quantity}"
    return [fields["value"] for each, fields in gateway.broker.readings if each == topic]


async def test_registers_and_coils_are_read_and_written_over_tcp(gateway: Gateway) -> None:
    port = free_port()
    async with serving(port), bridging(gateway, f"tcp://127.0.0.1:{port}", timeout=0.1):
        await until(lambda: len(values(gateway, "running")) > 2)
        assert values(gateway, "temperature")[0] == 21.5
        assert values(gateway, "power")[0] == 21.5
        assert values(gateway, "voltage") == [230]  # it does not change
        reported = gateway.subscriptions.publish("sensors/plc/running/set", b"on")
        reported += gateway.subscriptions.publish("sensors/plc/voltage/set", b'{"value": 242}')
        await until(lambda: values(gateway, "voltage")[-1] == 242)
        await until(lambda: values(gateway, "running")[-1] is True)
        for payload in (b"70000", b"high", b"\xff", b"1e999", b"[]"):
            reported += gateway.subscriptions.publish("sensors/plc/voltage/set", payload)
    assert [int(code) for code in reported] == [0, 0, 0x99, 0x99, 0x99, 0x99, 0x99]
    assert gateway.figure("modbus/writes") == 2


async def test_a_dead_device_does_not_slow_the_others(gateway: Gateway) -> None:
    port = free_port()
    async with serving(port), bridging(gateway, f"tcp://127.0.0.1:{port}", timeout=0.3):
        await until(lambda: len(values(gateway, "temperature")) > 40)
    assert gateway.counters.count("tidegate/modbus/timeouts") <= 2
    assert gateway.figure("modbus/plc/devices_in_trouble") == 1
    assert gateway.alarms.raised == {}


async def test_a_lost_server_is_waited_for_and_found_again(gateway: Gateway) -> None:
    port = free_port()
    async with bridging(gateway, f"tcp://127.0.0.1:{port}", timeout=0.1):
        await until(lambda: gateway.figure("modbus/plc/error") not in ("", "not yet started"))
        assert gateway.figure("modbus/plc/state") == "waiting"
        async with serving(port):
            await until(lambda: bool(values(gateway, "temperature")))
        await until(lambda: gateway.figure("modbus/plc/state") == "waiting")


async def test_writes_that_wait_are_bounded(gateway: Gateway) -> None:
    register = [{"address": 1, "quantity": "x", "writable": True}]
    async with bridging(gateway, f"tcp://127.0.0.1:{free_port()}", register=register):
        await until(lambda: bool(gateway.subscriptions.receivers))
        reported = [
            int(gateway.subscriptions.publish("sensors/plc/x/set", b"1")[0])
            for _ in range(WRITES_MAX + 2)
        ]
    assert reported == [0] * WRITES_MAX + [0x97, 0x97]


@pytest.fixture
def pair(tmp_path: Path) -> Iterator[tuple[str, str]]:
    """Two ends of a line, each with a path."""
    ends = [os.openpty() for _ in range(2)]
    for _, other in ends:
        tty.setraw(other)
    (first, _), (second, _) = ends
    pumps = [
        threading.Thread(target=_pump, args=each) for each in ((first, second), (second, first))
    ]
    for pump in pumps:
        pump.start()
    yield os.ttyname(ends[0][1]), os.ttyname(ends[1][1])
    for descriptor in (first, second):
        os.write(descriptor, b"")
    for _, other in ends:
        os.write(other, END)
    for pump in pumps:
        pump.join()
    for descriptors in ends:
        for descriptor in descriptors:
            os.close(descriptor)


END = b"\x00END OF THE TEST\x00"


def _pump(source: int, target: int) -> None:
    data = b""
    while END not in data:
        data = os.read(source, 4096)
        os.write(target, data)


async def test_a_line_that_cannot_be_set_up_is_waited_for(
    gateway: Gateway, pair: tuple[str, str], caplog: pytest.LogCaptureFixture
) -> None:
    async with bridging(gateway, pair[0], parity="even"):  # which a pseudo-terminal lacks
        await until(lambda: gateway.figure("modbus/plc/state") == "waiting")
    assert "Traceback" not in caplog.text


async def test_rtu_on_a_line(gateway: Gateway, pair: tuple[str, str]) -> None:
    ours, theirs = pair
    server = ModbusSerialServer(
        [device()], framer=FramerType.RTU, port=theirs, baudrate=19_200, ignore_missing_devices=True
    )
    task = asyncio.create_task(server.serve_forever())
    # a pseudo-terminal has no parity
    async with bridging(gateway, ours, timeout=0.2, parity="none"):
        await until(lambda: len(values(gateway, "running")) > 2)
        gateway.subscriptions.publish("sensors/plc/running/set", b"true")
        await until(lambda: values(gateway, "running")[-1] is True)
    await server.shutdown()  # type: ignore[no-untyped-call]
    await task
    assert values(gateway, "power")[0] == 21.5
