"""Pins by gpiozero's own stand-in for a board."""

import contextlib
from collections.abc import AsyncIterator, Iterator
from typing import Any

import pytest
from gpiozero import Device
from gpiozero.pins.mock import MockFactory

from gateway.bridges.gpio import KIND, GpioSettings
from gateway.bridges.supervision.supervisor import Supervisor
from gateway.config.bridges import BridgeConfig
from tests.support.disk.storage import until
from tests.support.nodes.bridges import Gateway


@pytest.fixture
def pins() -> Iterator[MockFactory]:
    before, Device.pin_factory = Device.pin_factory, MockFactory()
    yield Device.pin_factory
    Device.pin_factory.reset()
    Device.pin_factory = before


@contextlib.asynccontextmanager
async def bridging(gateway: Gateway, **settings: Any) -> AsyncIterator[None]:
    supervisor = Supervisor(gateway.services)
    await supervisor.apply([BridgeConfig(KIND, "p", GpioSettings(**settings))])
    try:
        yield
    finally:
        await supervisor.close()


def values(gateway: Gateway) -> list[object]:
    return [fields["value"] for _, fields in gateway.broker.readings]


async def test_a_change_of_an_input_is_a_reading(pins: MockFactory) -> None:
    gateway = Gateway.make()
    async with bridging(gateway, pin="GPIO17", quantity="motion", debounce=0.0):
        await until(lambda: values(gateway) == [False])
        pins.pin(17).drive_high()
        await until(lambda: values(gateway) == [False, True])
    assert gateway.broker.messages[0].topic == "sensors/host/motion"


async def test_a_pulse_that_is_over_at_once_is_two_readings(pins: MockFactory) -> None:
    gateway = Gateway.make()
    async with bridging(gateway, pin="GPIO17", quantity="motion", debounce=0.0):
        await until(lambda: values(gateway) == [False])
        for _ in range(3):
            pins.pin(17).drive_high()
            pins.pin(17).drive_low()
        await until(lambda: len(values(gateway)) == 7)
    assert values(gateway) == [False, *[True, False] * 3]


async def test_an_output_is_switched_by_messages(pins: MockFactory) -> None:
    gateway = Gateway.make()
    async with bridging(gateway, pin="GPIO4", quantity="power_on", output=True):
        await until(lambda: values(gateway) == [False])
        reported = gateway.subscriptions.publish("sensors/host/power_on/set", b"ON")
        for wrong in (b"perhaps", b"7", b'{"value":null}'):
            reported += gateway.subscriptions.publish("sensors/host/power_on/set", wrong)
        await until(lambda: values(gateway) == [False, True])
        assert pins.pin(4).state
        reported += gateway.subscriptions.publish("sensors/host/power_on/set", b'{"value":false}')
        await until(lambda: values(gateway) == [False, True, False])
    assert [int(code) for code in reported] == [0, 0x99, 0x99, 0x99, 0]


async def test_a_pin_that_is_not_there_is_waited_for(pins: MockFactory) -> None:
    gateway = Gateway.make()
    async with bridging(gateway, pin="GPIO99", quantity="motion"):
        await until(lambda: "GPIO99" in str(gateway.figure("gpio/p/error")))
    assert gateway.broker.messages == []
