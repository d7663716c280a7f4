"""The temperatures that the kernel measures: an example bridge, and first real readings."""

import asyncio
import contextlib
from dataclasses import dataclass
from pathlib import Path

from gateway.bridges.kind import BridgeKind
from gateway.bridges.settings import BridgeSettings, key
from gateway.bridges.supervision.host import Host
from gateway.bridges.supervision.interfaces import BridgeError
from gateway.settings.checks import text
from gateway.settings.quantities import duration


@dataclass(frozen=True, kw_only=True, slots=True)
class ThermalSettings(BridgeSettings):
    """Which zones are read, and how often."""

    folder: str = key(text, "folder of the kernel's thermal zones", "/sys/class/thermal")
    node: str = key(text, "node of the readings", "host")
    interval: float = key(duration(0.1, 3600), "time between two readings", 10.0)


class ThermalBridge:
    """Reads every zone at each interval."""

    def __init__(self, settings: ThermalSettings, host: Host) -> None:
        self._settings, self._host = settings, host

    async def run(self) -> None:
        """Read until cancelled; raise BridgeError if there is no zone."""
        while True:
            for zone, millidegrees in await asyncio.to_thread(self._read):
                node = f"{self._settings.node}-{zone}"
                self._host.read(node, "temperature", millidegrees / 1000, "°C")
            self._host.working()
            await asyncio.sleep(self._settings.interval)

    def _read(self) -> list[tuple[str, int]]:
        found = []
        for file in sorted(Path(self._settings.folder).glob("thermal_zone*/temp")):
            with contextlib.suppress(OSError, ValueError):  # some zones have no temperature
                found.append((file.parent.name.removeprefix("thermal_"), int(file.read_text())))
        if not found:
            raise BridgeError(f"the kernel shows no temperature in {self._settings.folder}")
        return found


KIND = BridgeKind("thermal", "the temperatures of this board", ThermalSettings, ThermalBridge)
