"""A landing file that grows: its lines are on disk before it has its name."""

import json
import os
from collections.abc import Sequence
from contextlib import suppress
from io import BufferedWriter
from pathlib import Path
from typing import Any

from gateway.storage.engine.sync_folder import sync_folder
from gateway.storage.outbox.outbox_row import OutboxRow
from gateway.uplink.landing.record import file_name, landing_line
from gateway.uplink.settings import UplinkSettings

FILE_LINES = 1_000
"""Lines at which a landing file is closed."""

FILE_SECONDS = 5.0
"""Seconds after its first line at which a landing file is closed."""

MAX_GATHERED_BYTES = 8 * 1024 * 1024
"""Bytes of one file, or of rows in memory, at which files are closed: large payloads."""

OPEN = ".jsonl.open"
"""How the names of files end that are not whole yet; they begin with a dot."""


class LandingFile:
    """A file of one epoch and stream, in which numbers rise; for a thread, like all that it does.

    Its rows may leave the outbox when `write` returns: after a crash `recover` names the file.
    """

    def __init__(self, folder: Path, settings: UplinkSettings, due: float) -> None:
        self.due = due
        self.lines = 0
        self.bytes = 0
        self._folder = folder
        self._settings = settings
        self._file: BufferedWriter | None = None
        self._path = folder
        self._first: OutboxRow | None = None
        self._last = 0

    def write(self, rows: Sequence[OutboxRow], received: int) -> None:
        """Append rows that land at `received` (ms since 1970), on disk when this returns."""
        file = self._file
        if file is None:
            file = self._open(rows[0])
        settings = self._settings
        data = b"".join(landing_line(row, settings, received=received) for row in rows)
        file.write(data)
        file.flush()
        os.fdatasync(file.fileno())
        if not self.lines:
            sync_folder(self._folder)
        self.lines += len(rows)
        self.bytes += len(data)
        self._last = rows[-1].seq

    def finish(self) -> Path:
        """Give the file its name, and return its path."""
        first = self._first
        if first is None:
            raise ValueError("a file without rows has no name")
        self.abandon()
        name = file_name(first.epoch, first.stream, first.seq, self._last, self.lines)
        path = self._path.rename(self._folder / name)
        sync_folder(self._folder)
        return path

    def abandon(self) -> None:
        """Close the file as it is, for `recover`."""
        file, self._file = self._file, None
        if file is not None:
            with suppress(OSError):  # what it could not write was promised to nobody
                file.close()

    def _open(self, first: OutboxRow) -> BufferedWriter:
        self._first = first
        self._path = self._folder / f".{first.epoch}.{first.stream}.{first.seq}{OPEN}"
        self._file = self._path.open("wb")
        return self._file


def recover(folder: Path) -> None:
    """Name the files that an earlier run left open, without what was not on disk for certain."""
    for path in sorted(folder.glob(f".*{OPEN}")):
        records, size = whole_records(path.read_bytes())
        if not records:
            path.unlink()
            continue
        with path.open("r+b") as file:
            file.truncate(size)
            os.fsync(file.fileno())
        first, last = records[0], records[-1]
        epoch, stream = first["epoch"], first["stream"]
        name = file_name(epoch, stream, first["seq"], last["seq"], len(records))
        path.rename(folder / name)
        sync_folder(folder)


def whole_records(data: bytes) -> tuple[list[dict[str, Any]], int]:
    """Return the records of an open file up to the first line that is none, and where they end."""
    records, size = [], 0
    for line in data.splitlines(keepends=True):
        try:
            record = json.loads(line)
        except ValueError:
            break
        if not line.endswith(b"\n"):
            break
        records.append(record)
        size += len(line)
    return records, size
