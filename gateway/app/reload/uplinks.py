"""History and uplinks, imported once there are any, even if that is while the gateway runs."""

from collections.abc import Awaitable, Callable
from contextlib import AsyncExitStack
from typing import TYPE_CHECKING, NamedTuple

from gateway.app.control import Control
from gateway.app.parts import Core, Run, Storage
from gateway.app.query.queries import Queries
from gateway.app.telemetry import Telemetry
from gateway.config.configuration import Configuration
from gateway.settings.storage import HistorySettings
from gateway.storage.history.recorded import is_recorded

if TYPE_CHECKING:
    from gateway.app.history import Recording
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
    """Changes the history, and the uplinks."""

    def __init__(self, needs: UplinkNeeds) -> None:
        self._needs = needs
        self._recording: Recording | None = None
        self._uplinks: UplinksPart | None = None

    async def start(self) -> None:
        """Connect the history to the broker, and the uplinks, if configured."""
        configuration = self._needs.run.configuration
        if configuration.uplinks:
            await self._start_uplinks(self._make_recording(configuration.history))
        elif configuration.history.keep or await is_recorded(self._needs.storage.database):
            await self._begun(configuration.history)

    def _make_recording(self, history: HistorySettings) -> "Recording":
        from gateway.app.history import Recording

        needs = self._needs
        return Recording(needs.run, needs.storage, needs.core.broker, history)

    async def _begun(self, history: HistorySettings) -> "Recording":
        """Return the recording, which began with these settings if there was none."""
        if self._recording is None:
            self._recording = self._make_recording(history)
            await self._recording.begin()
        return self._recording

    async def _start_uplinks(self, recording: "Recording") -> None:
        from gateway.app.uplink.uplinks import start_uplinks

        self._uplinks = await start_uplinks(*self._needs, recording)

    async def prepare(
        self, old: Configuration, new: Configuration, stack: AsyncExitStack
    ) -> Callable[[], Awaitable[list[str] | None]]:
        """Return a function that applies a configuration."""
        if self._uplinks is not None:
            return await self._uplinks.prepare(old, new, stack)

        async def switch() -> None:
            if new.uplinks:
                await self._start_uplinks(await self._begun(old.history))
            if old.history != new.history:
                recording = await self._begun(old.history)
                await recording.change(new.history.keep, new.history.maximum_bytes)

        return switch
