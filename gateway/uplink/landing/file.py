"""A landing file that grows: its lines are on disk before it has its name."""

import json
import logging
import os
import shutil
from collections.abc import Sequence
from contextlib import suppress
from io import BufferedRandom
from pathlib import Path
from typing import Any

from gateway.storage.engine.sync_folder import make_folder, sync_folder
from gateway.storage.outbox.outbox_row import OutboxRow
from gateway.uplink.landing.record import file_name, landing_line
from gateway.uplink.settings import UplinkSettings

logger = logging.getLogger(__name__)

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
        self._file: BufferedRandom | None = None
        self._path = folder
        self._first: OutboxRow | None = None
        self._last = 0

    def write(self, rows: Sequence[OutboxRow], received: int) -> None:
        """Append rows that land at `received` (ms since 1970), on disk when this returns.

        Raises OSError where they cannot be written, or others of before are no longer there.
        """
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
        self.keep()

    def keep(self) -> None:
        """Write the file anew if it was deleted, renamed or replaced; raise OSError if that fails.

        Its descriptor still reads all of it, so that nothing is lost unless it was truncated.
        """
        file = self._file
        if file is None:
            return
        found = os.fstat(file.fileno())
        if found.st_size < self.bytes:
            size = found.st_size
            raise OSError(f"{self._path} was truncated: of {self.bytes} bytes {size} are left")
        if not _leads_to(self._path, found):
            logger.critical("%s was deleted or renamed: it is written anew", self._path)
            self._file = _written_anew(file, self._path)

    def finish(self) -> Path:
        """Give the file its name, and return its path; raise OSError."""
        first = self._first
        if first is None:
            raise ValueError("a file without rows has no name")
        self.keep()
        name = file_name(first.epoch, first.stream, first.seq, self._last, self.lines)
        self._path = self._path.rename(self._folder / name)
        sync_folder(self._folder)
        self.abandon()
        return self._path

    def abandon(self) -> None:
        """Close the file as it is, for `recover`."""
        with suppress(OSError):
            self.keep()
        file, self._file = self._file, None
        if file is not None:
            with suppress(OSError):  # what it could not write was promised to nobody
                file.close()

    def _open(self, first: OutboxRow) -> BufferedRandom:
        self._first = first
        self._path = self._folder / f".{first.epoch}.{first.stream}.{first.seq}{OPEN}"
        self._file = _new_file(self._path)
        return self._file


def recover(folder: Path) -> None:
    """Name the files that an earlier run left open, without what was not on disk for certain.

    A line that the disk has damaged since stays, for the pipeline to put into quarantine.
    """
    for path in sorted(folder.glob(f".*{OPEN}")):
        if not path.is_file():
            continue
        data = path.read_bytes()
        records, size = whole_records(data)
        if not records:
            path.unlink()
            continue
        with path.open("r+b") as file:
            file.truncate(size)
            os.fsync(file.fileno())
        lines = data.count(b"\n", 0, size)
        if lines > len(records):
            logger.critical("%s: %d of %d lines are damaged", path, lines - len(records), lines)
        first, last = records[0], records[-1]
        epoch, stream = first["epoch"], first["stream"]
        name = file_name(epoch, stream, first["seq"], last["seq"], lines)
        path.rename(folder / name)
        sync_folder(folder)


def whole_records(data: bytes) -> tuple[list[dict[str, Any]], int]:
    """Return the records of an open file, and where the last one ends: a torn write is behind."""
    records, end, size = [], 0, 0
    for line in data.split(b"\n")[:-1]:
        end += len(line) + 1
        if (record := _record(line)) is not None:
            records.append(record)
            size = end
    return records, size


def _record(line: bytes) -> dict[str, Any] | None:
    try:
        found = json.loads(line)
    except (ValueError, RecursionError):
        return None
    match found:
        case {"epoch": str(), "stream": str(), "seq": int()}:
            record: dict[str, Any] = found
            return record
    return None


def _leads_to(path: Path, file: os.stat_result) -> bool:
    try:
        found = path.stat()
    except OSError:
        return False
    return (found.st_dev, found.st_ino) == (file.st_dev, file.st_ino)


def _new_file(path: Path) -> BufferedRandom:
    """Open an empty file to append to: what somebody truncates begins with no hole then."""
    path.unlink(missing_ok=True)
    return path.open("a+b")


def _written_anew(file: BufferedRandom, path: Path) -> BufferedRandom:
    """Return a new file at `path` with all that is in another, on disk with its name."""
    make_folder(path.parent)
    copy = _new_file(path)
    try:
        file.seek(0)
        shutil.copyfileobj(file, copy)
        copy.flush()
        os.fsync(copy.fileno())
        sync_folder(path.parent)
    except OSError:
        copy.close()
        raise
    file.close()
    return copy
