"""The directory destination: landing files, renamed into place only when complete."""

import asyncio
import itertools
import logging
import os
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path

from gateway.mqtt.reason_codes import ReasonCode
from gateway.storage.engine.files import make_folder, sync_folder
from gateway.storage.outbox.row import (
    RECALL,
    OutboxRow,
    Outcome,
)
from gateway.uplink.context import UplinkContext
from gateway.uplink.destination import Link, removals_on_disk
from gateway.uplink.errors import LinkError
from gateway.uplink.landing import file as landing_file
from gateway.uplink.landing.file import TEMPORARY, LandingFile, recover, write_all
from gateway.uplink.landing.folder import LandingFolder
from gateway.uplink.landing.live import FileKey, LiveLanding, finish_file
from gateway.uplink.landing.record import file_name, landing_line
from gateway.uplink.lanes import Lanes
from gateway.uplink.reports.control_messages import ControlMessage

logger = logging.getLogger(__name__)


@dataclass(slots=True)
class _PendingFile:
    """The rows of the next file of one epoch and stream, due at a monotonic time."""

    due: float
    rows: list[OutboxRow] = field(default_factory=list)


class DirectoryDestination:
    """Moves the outbox into files below `<directory>/<gateway_id>/`.

    Live rows are appended to open files (`LiveLanding`). Rows that waited are collected in memory
    and stay in the outbox. Their file is written completely under a hidden name, synced and
    renamed, its folder synced, and only then are its rows removed. A crash in between repeats rows
    in a later file under the same numbers.
    """

    def __init__(self, context: UplinkContext) -> None:
        directory = Path(context.settings.directory or "")
        self.name = str(directory)
        self._context = context
        self._settings = context.settings
        self._outbox = context.outbox
        self._uplink = context.uplink
        self._counters = context.counters
        self._clock = context.clock
        self._control_messages = context.control_messages
        self._folder = directory / context.settings.gateway_id
        self._pending: dict[tuple[str, str, bool], _PendingFile] = {}
        self._bytes = 0
        self._boundary = 0
        self._own_files = 0
        self._prepared: set[Path] = set()
        self._landing = LandingFolder(self._folder, context.settings)
        self._open_files: dict[FileKey, LandingFile] = {}
        self._counters.set("tidegate/uplink/landing_bytes", 0)
        self._counters.add("tidegate/uplink/landing_deleted", 0)
        self._counters.add("tidegate/uplink/landing_put_back", 0)

    async def run(self, link: Link) -> None:
        """Write rows to files until the link stops; rows in memory are written before it returns.

        Raises LinkError if a file cannot be written. Its acknowledged messages stay in memory while
        they are on disk under the hidden name, and otherwise return to the outbox.
        """
        try:
            await asyncio.to_thread(_prepare, self._folder)
            for key in list(self._open_files):
                await finish_file(self._open_files, key, self._landing)
            await asyncio.to_thread(recover, self._folder)
            await self._delete_oldest()
            await removals_on_disk(self._outbox, self._uplink, link)
            link.connected()
            await self._collect(link)
            await self._land_all()
        except OSError as error:
            raise LinkError(f"the landing folder cannot be written: {error}") from error
        finally:
            await self._secure()
            self._prepared.clear()
            self._pending.clear()
            self._bytes = 0

    async def _collect(self, link: Link) -> None:
        """Land rows until the link stops, and then those that arrived just before."""
        self._boundary = self._outbox.bounds.last_id
        lanes = Lanes(self._outbox, self._uplink)
        live = LiveLanding(
            self._context,
            self._folder,
            self._landing,
            self._delete_oldest,
            lanes,
            link,
            self._open_files,
        )
        live.live = self._outbox.writes.begin_live(live, self._uplink)
        try:
            stopping = False
            while not stopping:
                stopping = link.stopping
                more = await live.land(all_rows=stopping)
                more = await self._collect_backlog(lanes) or more
                await self._land_control_messages()
                await live.finish(all_files=stopping)
                await self._land_due()
                if not more and not stopping:
                    await link.wait(self._seconds_left(live))
        finally:
            self._outbox.writes.end_live(self._uplink)

    async def _secure(self) -> None:
        """Close open files; return the rows of a lost one to the outbox."""
        for key, file in list(self._open_files.items()):
            if not file.lines:
                del self._open_files[key]
                continue
            try:
                await asyncio.to_thread(file.restore)
            except OSError as error:
                del self._open_files[key]
                self._requeue(file, error)
            finally:
                file.close()

    def _requeue(self, file: LandingFile, error: OSError) -> None:
        """Return messages to the outbox: in a lane of their own, since their outcome is known."""
        rows = file.rows
        for row in rows:
            again = OutboxRow(row.message, row.epoch, row.stream, row.seq, RECALL)
            # its outcome was reported as delivered: it must not expire
            again.uplinks, again.message_expiry = self._uplink, None
            self._outbox.add(again)
        self._outbox.end_turn()
        self._counters.add("tidegate/uplink/landing_put_back", len(rows))
        logger.critical(
            "%s: an open landing file was deleted and cannot be written again (%s). Its %d messages"
            " are back in the outbox, and are written when the folder is writable again"
            " (tidegate docs disk)",
            self._folder,
            error,
            len(rows),
        )

    async def _collect_backlog(self, lanes: Lanes) -> bool:
        """Collect some rows of the backlog; return whether there may be more."""
        for _ in range(landing_file.FILE_LINES):
            if not lanes.backlog_waits:
                return False
            row = lanes.next_waited() or await lanes.backlog()
            if row is None:
                return False
            await self._collect_row(row)
        return True

    async def _collect_row(self, row: OutboxRow) -> None:
        key = (row.epoch, row.stream, row.lane == RECALL)  # whose numbers rise separately
        file = self._pending.get(key)
        if file is None:
            due = self._clock.monotonic() + landing_file.FILE_SECONDS
            file = self._pending[key] = _PendingFile(due)
        file.rows.append(row)
        self._bytes += row.size
        if len(file.rows) >= landing_file.FILE_LINES:
            await self._land(key)
        elif self._bytes >= landing_file.MAX_COLLECTED_BYTES:
            await self._land_all()

    def _seconds_left(self, live: LiveLanding) -> float | None:
        """Return the seconds until a file is due, None if none is begun."""
        now = self._clock.monotonic()
        waits = [max(0.0, file.due - now) for file in self._pending.values()]
        if (wait := live.seconds_left()) is not None:
            waits.append(wait)
        return min(waits, default=None)

    async def _land_due(self) -> None:
        now = self._clock.monotonic()
        for key in [key for key, file in self._pending.items() if file.due <= now]:
            await self._land(key)

    async def _land_all(self) -> None:
        for key in list(self._pending):
            await self._land(key)

    async def _land(self, key: tuple[str, str, bool]) -> None:
        collected = self._pending.pop(key).rows
        self._bytes -= sum(row.size for row in collected)
        now = self._clock.wall_ms()
        rows = [row for row in collected if self._outbox.claim(row, now, self._uplink)]
        if not rows:
            return
        resent = [row.id <= self._boundary or row.lane == RECALL for row in rows]
        await self._delete_oldest()
        await asyncio.to_thread(self._write, rows, resent, now)
        self._counters.set("tidegate/uplink/landing_bytes", self._landing.bytes)
        self._outbox.remove(rows, Outcome.DELIVERED, uplink=self._uplink)
        self._outbox.end_turn()
        self._counters.add("tidegate/uplink/sent", len(rows))
        self._counters.add("tidegate/uplink/acknowledged", len(rows))

    async def _delete_oldest(self) -> None:
        """Enforce the bounds of the landing folder; raise LinkError if it is full and stays so."""
        before = self._landing.deleted
        now, wall = self._clock.monotonic(), self._clock.wall_ms() / 1000
        try:
            await asyncio.to_thread(self._landing.delete_oldest, now, wall)
        finally:
            self._counters.set("tidegate/uplink/landing_bytes", self._landing.bytes)
        deleted = self._landing.deleted - before
        if deleted:
            self._counters.add("tidegate/uplink/landing_deleted", deleted)
            logger.warning(
                "%s: %d landing files were deleted, the oldest, for the bounds of the folder",
                self._folder,
                deleted,
            )

    def _write(self, rows: list[OutboxRow], resent: list[bool], received: int) -> None:
        """Write a file, or two if recalled rows would have the name of others."""
        if rows[0].lane == RECALL and (self._folder / _name_of(rows)).exists():
            half = len(rows) // 2
            if half:  # the only row of an existing file has landed before
                self._write(rows[:half], resent[:half], received)
                self._write(rows[half:], resent[half:], received)
            return
        lines = (
            landing_line(row, self._settings, resent=again, received=received)
            for row, again in zip(rows, resent, strict=True)
        )
        self._landing.wrote(_write_file(self._folder, _name_of(rows), lines))

    async def _land_control_messages(self) -> None:
        """Write ledger and clock records: a file for each folder, one line for each message."""
        folders: dict[str, list[ControlMessage]] = {}
        while (message := self._control_messages.next()) is not None:
            folders.setdefault(message.suffix, []).append(message)
        try:
            while folders:
                suffix = next(iter(folders))
                await self._land_folder(suffix, folders[suffix])
                del folders[suffix]
        finally:
            for message in itertools.chain(*folders.values()):
                self._control_messages.requeue(message)

    async def _land_folder(self, suffix: str, messages: list[ControlMessage]) -> None:
        self._own_files += 1
        name = f"{self._settings.epoch}.{self._own_files}.jsonl"
        lines = [message.payload + b"\n" for message in messages]
        await asyncio.to_thread(self._write_own, self._folder / suffix, name, lines)
        for message in messages:
            self._control_messages.answered(message, ReasonCode.SUCCESS)

    def _write_own(self, folder: Path, name: str, lines: list[bytes]) -> None:
        if folder not in self._prepared:
            _prepare(folder)
            self._prepared.add(folder)
        self._landing.wrote(_write_file(folder, name, lines))


def _write_file(folder: Path, name: str, lines: Iterable[bytes]) -> Path:
    """Write a file that is complete once it has its name, and on disk when this returns."""
    hidden = folder / f".{name.removesuffix('.jsonl')}{TEMPORARY}"
    flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC
    descriptor = os.open(hidden, flags, 0o666)
    try:
        write_all(descriptor, b"".join(lines))
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
    hidden.rename(folder / name)
    sync_folder(folder)
    return folder / name


def _name_of(rows: list[OutboxRow]) -> str:
    first, last = rows[0], rows[-1]
    return file_name(first.epoch, first.stream, first.seq, last.seq, len(rows))


def _prepare(folder: Path) -> None:
    """Create the folder; remove the unfinished files of an earlier run, whose rows still wait."""
    make_folder(folder)
    for left_over in folder.glob(f".*{TEMPORARY}"):
        if not left_over.is_dir():
            left_over.unlink()
