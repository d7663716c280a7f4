"""A frame intake whose parts are in memory."""

from collections.abc import Callable

import pytest

from gateway.bridges.readings.reading_publisher import ReadingPublisher
from gateway.bridges.serial.frame_intake import FrameIntake
from gateway.counters import Counters
from gateway.mqtt.message import Message
from gateway.mqtt.reason_codes import ReasonCode
from tests.support.clocks import ManualClock
from tests.support.nodes.bridges import Broker, Disk, MemoryFrames


@pytest.fixture
def answers() -> list[bytes]:
    return []


@pytest.fixture
def make(
    broker: Broker,
    disk: Disk,
    frames: MemoryFrames,
    counters: Counters,
    clock: ManualClock,
    answers: list[bytes],
) -> Callable[..., FrameIntake]:
    def make(publish: Callable[[Message], ReasonCode] = broker.publish) -> FrameIntake:
        return FrameIntake(
            "ttyUSB0",
            ReadingPublisher("serial:ttyUSB0", publish=publish, counters=counters, clock=clock),
            answers.append,
            when_on_disk=disk.when_on_disk,
            frames=frames,
            counters=counters,
            clock=clock,
        )

    return make


@pytest.fixture
def intake(make: Callable[[], FrameIntake]) -> FrameIntake:
    return make()
