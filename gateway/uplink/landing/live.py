"""Appends live rows to landing files: on disk as soon as a publisher waits for it."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path

from gateway.storage.outbox.row import OutboxRow, Outcome
from gateway.storage.outbox.writes import Live
from gateway.uplink.context import UplinkContext
from gateway.uplink.destination import REMOVAL_SECONDS, Link
from gateway.uplink.landing import file as landing_file
from gateway.uplink.landing.file import LandingFile
from gateway.uplink.landing.folder import LandingFolder
from gateway.uplink.lanes import MAX_FRESH_BYTES, Lanes

UNHURRIED_SECONDS = 0.5
"""Seconds for which live rows that no publisher waits for are held in memory."""

CHECK_SECONDS = 1.0
"""Seconds between two checks that open files still exist, beside those after each write."""

FileKey = tuple[str, str]
"""The epoch and the stream of a file."""


class LiveLanding:
    """Appends live rows to open `files`, one of each epoch and stream, and ends the rows.

    It is the outbox's `LiveSender`. Publishers are answered when their lines are on disk: a row
    that lands within `[uplink] commit_within` is never written to the database. Rows that no
    publisher waits for are collected for `landing_interval`, or UNHURRIED_SECONDS, and FILE_LINES
    at most. `land` runs in the destination's task.
    """

    def __init__(
        self,
        context: UplinkContext,
        folder: Path,
        landing: LandingFolder,
        delete_oldest: Callable[[], Awaitable[None]],
        lanes: Lanes,
        link: Link,
        files: dict[FileKey, LandingFile],
    ) -> None:
        self._context = context
        self._folder = folder
        self._landing = landing
        self._delete_oldest = delete_oldest
        self._lanes = lanes
        self._link = link
        self._files = files
        self.is_free = True  # the backlog does not block it
        self.accepts = lanes.accepts
        self.live: Live | None = None
        self._awaited = False
        self._check_at = 0.0
        self._since: float | None = None  # when the first row in memory arrived (monotonic)
        self._interval = context.settings.landing_interval or UNHURRIED_SECONDS
        self._has_interval = context.settings.landing_interval is not None

    def send(self, row: OutboxRow) -> None:
        """Hold a live row that was just added until the destination's task lands it."""
        self._lanes.push(row)
        if self._since is None:
            self._since = self._context.clock.monotonic()
            if not row.awaits_commit:  # otherwise its commit wakes the link
                self._link.wake.set()
        awaited = row.barrier is not None or len(self._lanes.fresh) >= landing_file.FILE_LINES
        if awaited and not self._awaited:
            self._awaited = True
            self._link.wake.set()

    def seconds_left(self) -> float | None:
        """Return the seconds until there is work without being woken."""
        due = [min(file.due, self._check_at) for file in self._files.values()]
        if self._since is not None:
            due.append(self._since + self._interval)
        return max(0.0, min(due) - self._context.clock.monotonic()) if due else None

    async def land(self, *, all_rows: bool = False) -> bool:
        """Land the rows that are awaited or old enough, and those that were read; return if any."""
        begun = self._context.clock.monotonic()
        due = self._since is not None and begun >= self._since + self._interval
        if not (self._awaited or due or all_rows or self._must_read):
            return False
        self._since, self._awaited = None, False
        rows = await self._next_rows()
        wall = self._context.clock.wall_ms()
        by_key: dict[FileKey, list[OutboxRow]] = {}
        for row in rows:
            if self._context.outbox.claim(row, wall, self._context.uplink):
                by_key.setdefault((row.epoch, row.stream), []).append(row)
        for key, group in by_key.items():
            await self._append(key, group, wall, by_interval=due and self._has_interval)
        if rows and self.live is not None:
            self.live.delay = self._context.clock.monotonic() - begun
        return bool(rows)

    async def finish(self, *, all_files: bool = False) -> None:
        """Name the files that have been open for long enough, and check the others."""
        now = self._context.clock.monotonic()
        if now >= self._check_at:
            self._check_at = now + CHECK_SECONDS
            for file in self._files.values():
                await asyncio.to_thread(file.restore)
        for key in [key for key, file in self._files.items() if all_files or file.due <= now]:
            await self._finish(key)

    @property
    def _must_read(self) -> bool:
        """Whether live rows must be read from the outbox."""
        return self._lanes.live_waits and not self._lanes.fresh

    async def _next_rows(self) -> list[OutboxRow]:
        rows: list[OutboxRow] = []
        size = 0
        while len(rows) < landing_file.FILE_LINES and size < MAX_FRESH_BYTES:
            row = await self._next()
            if row is None:
                break
            rows.append(row)
            size += row.size
        if self._lanes.fresh and self._has_interval:
            self._since = self._context.clock.monotonic()
        elif self._lanes.fresh:
            self._awaited = True  # of rows that wait for their commit, which wakes the link
        return rows

    async def _next(self) -> OutboxRow | None:
        """Return the next live row, None when there is none at the moment."""
        row = self._lanes.next_live()
        if row is None and self._lanes.live_waits:
            row = await self._lanes.live()
        return row

    async def _append(
        self, key: FileKey, rows: Sequence[OutboxRow], wall: int, *, by_interval: bool
    ) -> None:
        """Write rows of one epoch and stream to disk; collected ones are included."""
        while rows:
            file = self._files.get(key)
            if file is None:
                await self._delete_oldest()
                settings, now = self._context.settings, self._context.clock.monotonic()
                seconds = landing_file.FILE_SECONDS if by_interval else self._file_seconds
                file = LandingFile(self._folder, settings, now + seconds)
                self._files[key] = file
            free = landing_file.FILE_LINES - file.lines
            part, rows = rows[:free], rows[free:]
            await asyncio.to_thread(file.write, part, wall)
            self._end(part)
            if file.lines >= landing_file.FILE_LINES:
                await self._finish(key)
            elif self._open_bytes >= landing_file.MAX_COLLECTED_BYTES:
                for each in list(self._files):
                    await self._finish(each)

    @property
    def _file_seconds(self) -> float:
        return self._interval if self._has_interval else landing_file.FILE_SECONDS

    @property
    def _open_bytes(self) -> int:
        return sum(file.bytes for file in self._files.values())

    def _end(self, rows: Sequence[OutboxRow]) -> None:
        outbox, counters = self._context.outbox, self._context.counters
        uplink = self._context.uplink
        outbox.remove(rows, Outcome.DELIVERED, commit_within=REMOVAL_SECONDS, uplink=uplink)
        outbox.end_turn()
        counters.add("tidegate/uplink/sent", len(rows))
        counters.add("tidegate/uplink/acknowledged", len(rows))

    async def _finish(self, key: FileKey) -> None:
        await finish_file(self._files, key, self._landing)
        self._context.counters.set("tidegate/uplink/landing_bytes", self._landing.bytes)


async def finish_file(
    files: dict[FileKey, LandingFile], key: FileKey, landing: LandingFolder
) -> None:
    """Name one of the open files, which is removed from them; raise OSError."""
    file = files[key]
    try:
        path = await asyncio.to_thread(file.finish)
    finally:
        if file.has_landed:
            del files[key]
    landing.wrote(path)
