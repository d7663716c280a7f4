"""History and uplinks, even if the first uplink is added while the gateway runs."""

from collections.abc import Awaitable, Callable
from contextlib import AsyncExitStack
from typing import TYPE_CHECKING, NamedTuple

from gateway.app.control import Control
from gateway.app.history import Recording
from gateway.app.parts import Core, Run, Storage
from gateway.app.query.queries import Queries
from gateway.app.telemetry import Telemetry
from gateway.config.configuration import Configuration

if TYPE_CHECKING:
    from gateway.app.uplink.uplinks import UplinksPart


class UplinkNeeds(NamedTuple):
    """What uplinks are made from."""

    run: Run
    storage: Storage
    core: Core
    control: Control
    telemetry: Telemetry
    queries: Queries


class HistoryPart:
    """Changes the history, and the uplinks, which are imported only if there are any."""

    def __init__(self, needs: UplinkNeeds) -> None:
        self._needs = needs
        self._recording = Recording(needs.run, needs.storage, needs.core.broker)
        self._uplinks: UplinksPart | None = None

    async def start(self) -> None:
        """Connect the history to the broker, and the uplinks, if configured."""
        if self._needs.run.configuration.uplinks:
            await self._start_uplinks()
        else:
            await self._recording.begin()

    async def _start_uplinks(self) -> None:
        from gateway.app.uplink.uplinks import start_uplinks

        self._uplinks = await start_uplinks(*self._needs, self._recording)

    async def prepare(
        self, old: Configuration, new: Configuration, stack: AsyncExitStack
    ) -> Callable[[], Awaitable[list[str] | None]]:
        """Return a function that applies a configuration."""
        if self._uplinks is not None:
            return await self._uplinks.prepare(old, new, stack)

        async def switch() -> None:
            if new.uplinks:
                await self._start_uplinks()
            if old.history != new.history:
                await self._recording.change(new.history.keep, new.history.maximum_bytes)

        return switch
