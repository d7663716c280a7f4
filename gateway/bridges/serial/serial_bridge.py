"""A serial port to readings: opened, read, and opened again for as long as the gateway runs."""

import asyncio
import logging
from pathlib import PurePath

from gateway.bridges.interfaces import NodeFrames, Publish, SerialSettings, WhenOnDisk
from gateway.bridges.readings.reading_publisher import ReadingPublisher
from gateway.bridges.serial.frame_intake import FrameIntake
from gateway.bridges.serial.line_intake import LineIntake
from gateway.bridges.serial.serial_port import PortError, SerialPort, require_pyserial
from gateway.clock import Clock
from gateway.counters import Counters

RETRY_FIRST = 0.25
"""Seconds until a port that is not there is tried again."""

RETRY_GROWTH = 1.25
"""Each further wait is so much longer: a device that starts beside the gateway is soon found."""

RETRY_MAX = 5.0
"""Seconds between two tries at most: how long a node waits after it was plugged in."""

logger = logging.getLogger(__name__)


def port_name(port: str) -> str:
    """Return the port's base name as topics show it: `+` and `#` cannot stand in one."""
    return PurePath(port).name.replace("+", "_").replace("#", "_")


class SerialBridge:
    """One `[[serial]]` port. A port that does not exist is tried again and shown, never fatal.

    Publishes as the client `serial:<port's base name>`. `tidegate/serial/<port>/state` is `open`
    or `waiting`, `.../error` why it waits. Raises StartError when pyserial is not installed.
    """

    def __init__(
        self,
        settings: SerialSettings,
        *,
        publish: Publish,
        when_on_disk: WhenOnDisk,
        frames: NodeFrames,
        counters: Counters,
        clock: Clock,
    ) -> None:
        require_pyserial()
        self.name = f"serial {settings.port}"
        self._settings = settings
        self._counters = counters
        self._port: SerialPort | None = None
        self._retry = RETRY_FIRST
        name = port_name(settings.port)
        self._gauges = f"tidegate/serial/{name}"
        publisher = ReadingPublisher(
            f"serial:{name}", publish=publish, counters=counters, clock=clock
        )
        self._intake: FrameIntake | LineIntake
        if settings.format == "json":
            node = settings.node or name
            self._intake = LineIntake(node, publisher, counters=counters, clock=clock)
        else:
            self._intake = FrameIntake(
                name,
                publisher,
                self._answer,
                when_on_disk=when_on_disk,
                frames=frames,
                counters=counters,
                clock=clock,
            )
        self._show("waiting", "not yet opened")

    async def run(self) -> None:
        """Read the port until cancelled; open it again whenever it was lost."""
        while True:
            try:
                await self._read_until_lost()
            except PortError as failure:
                self._show_waiting(str(failure))
            await asyncio.sleep(self._retry)
            self._retry = min(self._retry * RETRY_GROWTH, RETRY_MAX)

    async def _read_until_lost(self) -> None:
        port = await SerialPort.open(self._settings.port, self._settings.baud)
        self._port = port
        try:
            self._intake.restart()
            self._show("open", "")
            logger.info("%s: open", self.name)
            while True:
                data = await port.read()
                self._retry = RETRY_FIRST  # not at opening, which may succeed on a dying device
                self._intake.feed(data)
        finally:
            self._port = None
            port.close()

    def _answer(self, acknowledgement: bytes) -> None:
        """Send to the node; an answer that cannot leave is asked for by the next sending."""
        if self._port is None or not self._port.write(acknowledgement):
            self._counters.add("tidegate/serial/acknowledgements_dropped")

    def _show_waiting(self, reason: str) -> None:
        if self._counters.values.get(f"{self._gauges}/error") != reason:
            logger.warning("%s: waiting for the port: %s", self.name, reason)
        self._show("waiting", reason)

    def _show(self, state: str, error: str) -> None:
        self._counters.set(f"{self._gauges}/state", state)
        self._counters.set(f"{self._gauges}/error", error)
