"""Pins of the board: a reading for each change, and outputs that can be switched."""

import asyncio
from dataclasses import dataclass
from typing import Any

from gateway.bridges.kind import BridgeKind
from gateway.bridges.readings.reading import series_topic
from gateway.bridges.settings import BridgeSettings, bridge_name, instance, key, quantity
from gateway.bridges.supervision.control import SWITCH, parse_number
from gateway.bridges.supervision.host import Host
from gateway.bridges.supervision.interfaces import BridgeError
from gateway.mqtt.message import Message
from gateway.mqtt.reason_codes import ReasonCode
from gateway.settings.checks import boolean, one_of, text
from gateway.settings.quantities import duration

PULLS = {"up": True, "down": False}

PULSES_MAX = 1_000
"""Changes that wait to be published; further ones are counted and dropped."""


@dataclass(frozen=True, kw_only=True, slots=True)
class GpioSettings(BridgeSettings):
    """One pin."""

    pin: str = key(text, 'the pin as gpiozero names it: `"GPIO17"`, `"BOARD11"`')
    quantity: str = key(quantity, "what it measures, such as `motion`, `power_on`")
    instance: str | None = key(
        instance, "distinguishes it from others of its quantity at the node", None
    )
    node: str = key(bridge_name, "node of the readings", "host")
    output: bool = key(boolean, "messages switch the pin", default=False)
    pull: str = key(one_of("up", "down"), "resistor of an input; `up` also inverts it", "down")
    debounce: float = key(duration(0, 10), "time in which further changes are ignored", 0.05)
    refresh: float = key(
        duration(0.1, 86_400), "time after which the state is published again", 60.0
    )


class GpioBridge:
    """Publishes the pin's state, and switches it if it is an output (`sensors/…/set`)."""

    def __init__(self, settings: GpioSettings, host: Host) -> None:
        self._settings, self._host = settings, host
        self._changed = asyncio.Event()
        self._pulses: list[bool] = []
        self._device: Any = None
        if settings.output:
            host.offer(_topic(settings), SWITCH, self._switch)
        host.set_longest_gap(_topic(settings), settings.refresh)

    async def run(self) -> None:
        """Publish until cancelled; raise BridgeError where the pin is not available."""
        loop = asyncio.get_running_loop()
        self._device = await asyncio.to_thread(_open, self._settings)
        try:
            if not self._settings.output:
                self._watch(loop)
            self._host.working()
            while True:
                self._changed.clear()
                self._publish()
                try:
                    await asyncio.wait_for(self._changed.wait(), self._settings.refresh)
                except TimeoutError:
                    continue
        finally:
            device, self._device = self._device, None
            await asyncio.to_thread(device.close)

    def _watch(self, loop: asyncio.AbstractEventLoop) -> None:
        """Record each change as it happens: a pulse may be over before it is published."""

        def note(value: int) -> None:
            if len(self._pulses) == PULSES_MAX:
                self._host.count("pulses_lost")
                return
            self._pulses.append(bool(value))
            self._changed.set()

        # gpiozero calls these in its own thread
        self._device.when_activated = lambda: loop.call_soon_threadsafe(note, 1)
        self._device.when_deactivated = lambda: loop.call_soon_threadsafe(note, 0)

    def _publish(self) -> None:
        """Publish each change, or the state if there is none."""
        settings = self._settings
        for value in [*self._pulses] or [bool(self._device.value)]:
            instance = settings.instance or ""
            self._host.read(settings.node, settings.quantity, value, instance=instance)
        self._pulses.clear()

    def _switch(self, message: Message) -> ReasonCode:
        try:
            on = parse_number(bytes(message.payload))
        except ValueError:
            return ReasonCode.PAYLOAD_FORMAT_INVALID
        if on not in (0, 1):
            return ReasonCode.PAYLOAD_FORMAT_INVALID
        if self._device is None:
            return ReasonCode.IMPLEMENTATION_SPECIFIC_ERROR
        self._device.value = bool(on)
        self._changed.set()
        return ReasonCode.SUCCESS


def _topic(settings: GpioSettings) -> str:
    return series_topic(settings.node, settings.quantity, settings.instance or "")


def _open(settings: GpioSettings) -> Any:
    from gpiozero import DigitalInputDevice, DigitalOutputDevice, GPIOZeroError

    try:
        if settings.output:
            return DigitalOutputDevice(settings.pin)
        bounce = settings.debounce or None
        return DigitalInputDevice(settings.pin, pull_up=PULLS[settings.pull], bounce_time=bounce)
    except (GPIOZeroError, OSError, ValueError) as failure:
        raise BridgeError(f"{settings.pin}: {failure}") from failure


KIND = BridgeKind(
    name="gpio",
    summary="a pin of the board: a contact, a motion detector, a relay",
    settings=GpioSettings,
    make=GpioBridge,
    needs=("gpiozero",),
    extra="gpio",
    counters={"pulses_lost": "Changes dropped because too many waited."},
    default_name=lambda settings: settings.pin,
    series=lambda settings, _name: [("quantity", _topic(settings))],
)
