"""A pseudo-terminal, and the parts of the application that a bridge is given."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from gateway.counters import Counters
from tests.support.clocks import ManualClock
from tests.support.nodes.bridges import Broker, Disk, Gateway, MemoryFrames
from tests.support.nodes.serial_line import SerialLine


@pytest.fixture
def line(tmp_path: Path) -> Iterator[SerialLine]:
    line = SerialLine(tmp_path / "ttyNODE")
    line.plug()
    yield line
    line.close()


@pytest.fixture
def broker() -> Broker:
    return Broker()


@pytest.fixture
def disk() -> Disk:
    return Disk()


@pytest.fixture
def frames() -> MemoryFrames:
    return MemoryFrames()


@pytest.fixture
def counters() -> Counters:
    return Counters()


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock()


@pytest.fixture
def gateway(
    clock: ManualClock, broker: Broker, disk: Disk, frames: MemoryFrames, counters: Counters
) -> Gateway:
    gateway = Gateway.make(clock)
    gateway.broker, gateway.disk = broker, disk
    gateway.frames, gateway.counters = frames, counters
    return gateway
