"""A frame intake whose parts are in memory."""

from collections.abc import Callable
from dataclasses import replace

import pytest

from gateway.bridges.serial.frame_intake import FrameIntake
from gateway.bridges.supervision.host import Host
from gateway.mqtt.message import Message
from gateway.mqtt.reason_codes import ReasonCode
from tests.support.nodes.bridges import Gateway


@pytest.fixture
def answers() -> list[bytes]:
    return []


@pytest.fixture
def make(gateway: Gateway, answers: list[bytes]) -> Callable[..., FrameIntake]:
    def make(publish: Callable[[Message], ReasonCode] | None = None) -> FrameIntake:
        services = gateway.services
        if publish is not None:
            services = replace(services, publish=publish)
        return FrameIntake(Host("serial", "ttyUSB0", services), answers.append)

    return make


@pytest.fixture
def intake(make: Callable[[], FrameIntake]) -> FrameIntake:
    return make()
