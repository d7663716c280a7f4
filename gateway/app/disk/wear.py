"""Watches the bytes written: figures, the write budget and the card's life."""

import asyncio
import logging

from gateway.app.parts import Run
from gateway.background import background
from gateway.settings.storage import StorageSettings
from gateway.storage.engine.writer import Writer
from gateway.storage.state.daily_writes import Written, note_written
from gateway.telemetry.block_device import BlockDevice, block_device
from gateway.telemetry.card_life import default_endurance, life_days, spell_bytes
from gateway.telemetry.process_metrics import bytes_written
from gateway.telemetry.write_budget import WriteBudget

logger = logging.getLogger(__name__)

INTERVAL = 10.0
"""Seconds between two measurements."""

NOTE_SECONDS = 600.0
"""Seconds between two records in the database, which are written too."""

COMMIT_WITHIN = 60.0
"""Seconds for which a record may wait for another commit."""


class Wear:
    """Shows what is written, applies `[storage] write_budget`, and records it for `doctor`."""

    def __init__(self, run: Run, writer: Writer) -> None:
        self._run = run
        self._writer = writer
        self._device = block_device(run.data)
        self._budget = WriteBudget(None)
        self._endurance: int | None = None
        self.change(run.configuration.storage)
        self._flushes = None if self._device is None else self._device.flushes()
        self._noted = Written(0, 0, 0)
        self._started = run.clock.monotonic()
        self._exceeded = False
        self._task: asyncio.Task[None] | None = None

    def change(self, settings: StorageSettings) -> None:
        """Keep to this budget and reckon with this endurance from now on."""
        self._budget.change(settings.write_budget)
        self._endurance = settings.endurance or _endurance_of(self._device)
        self._run.counters.set("tidegate/storage/write_budget", settings.write_budget or 0)

    def start(self) -> None:
        """Measure now and at each interval; do nothing if Linux has no count."""
        if bytes_written() is not None:
            self._task = background(self._measure())

    def stop(self) -> None:
        """Stop measuring and add the last record to the pending batch."""
        if self._task is not None:
            self._task.cancel()
            self._note()

    async def _measure(self) -> None:
        note_due = self._started + NOTE_SECONDS
        while True:
            self.update()
            await asyncio.sleep(INTERVAL)
            if self._run.clock.monotonic() >= note_due:
                note_due += NOTE_SECONDS
                self._note()

    def update(self) -> None:
        """Update figures, budget and alarm."""
        written = bytes_written() or 0
        budget = self._budget
        budget.update(self._run.clock.monotonic(), written)
        self._writer.stretch = budget.stretch
        counters = self._run.counters
        counters.set("tidegate/storage/written_bytes", written)
        counters.set("tidegate/storage/written_per_day", budget.bytes_per_day)
        counters.set("tidegate/storage/stretch_percent", round(100 * budget.stretch))
        self._show_device()
        if budget.exceeded != self._exceeded:
            self._exceeded = budget.exceeded
            self._alarm()

    def _show_device(self) -> None:
        counters = self._run.counters
        if self._device is not None and self._flushes is not None:
            flushes = self._device.flushes()
            counters.set("tidegate/storage/device_flushes", (flushes or 0) - self._flushes)
        if self._endurance is not None and self._budget.bytes_per_day:
            days = life_days(self._endurance, self._budget.bytes_per_day)
            counters.set("tidegate/storage/card_days", int(days))

    def _alarm(self) -> None:
        text = ""
        if self._exceeded:
            rate = spell_bytes(self._budget.bytes_per_day)
            budget = spell_bytes(self._budget.budget or 0)
            text = f"{rate} a day are written, above the write budget of {budget} a day"
            logger.warning("%s, although commits wait for their whole window", text)
        self._run.alarm("write_budget", text)

    def _note(self) -> None:
        run, noted = self._run, self._noted
        self._noted = now = Written(
            bytes_written() or 0,
            run.counters.count("tidegate/storage/commits"),
            int(run.clock.monotonic() - self._started),
        )
        more = Written(
            now.written - noted.written, now.commits - noted.commits, now.seconds - noted.seconds
        )

        def add(statement: str, row: tuple[object, ...]) -> int:
            return self._writer.add(statement, row, commit_within=COMMIT_WITHIN)

        note_written(add, run.clock.wall_ms(), more)


def _endurance_of(device: BlockDevice | None) -> int | None:
    return None if device is None else default_endurance(device.size)
