"""A landing file that is appended to: its lines are on disk before it has its name."""

import errno
import json
import logging
import os
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from gateway.settings.uplink import UplinkSettings
from gateway.storage.engine.files import make_folder, sync_folder
from gateway.storage.outbox.row import OutboxRow
from gateway.uplink.landing.record import file_name, landing_line

logger = logging.getLogger(__name__)

FILE_LINES = 1_000
"""Lines at which a landing file is closed."""

FILE_SECONDS = 5.0
"""Seconds after its first line at which a landing file is closed, unless `landing_interval` says
otherwise."""

MAX_COLLECTED_BYTES = 8 * 1024 * 1024
"""Bytes of all open files, or of rows in memory, at which files are closed: large payloads."""

OPEN = ".jsonl.open"
"""Suffix of the names of incomplete files, which begin with a dot."""

TEMPORARY = ".jsonl.tmp"
"""Suffix of the names of files whose lines are in the outbox or in memory, too."""

_APPEND = os.O_WRONLY | os.O_APPEND | os.O_CLOEXEC | os.O_NOFOLLOW


class LandingFile:
    """A file of one epoch and stream, in which numbers rise; used in a thread.

    Its rows may be removed from the outbox when `write` returns: after a crash `recover` names the
    file. They stay in memory until the file `has_landed`, so that it can be written again if it is
    lost before.
    """

    def __init__(self, folder: Path, settings: UplinkSettings, due: float) -> None:
        self.due = due
        self.bytes = 0
        self.has_landed = False
        self._folder = folder
        self._settings = settings
        self._path = folder
        self._rows: list[tuple[OutboxRow, int]] = []  # each with the time at which it landed
        self._descriptor: int | None = None
        self._identity: tuple[int, int] | None = None  # None: the content on disk is not trusted

    @property
    def lines(self) -> int:
        """How many rows were written."""
        return len(self._rows)

    @property
    def rows(self) -> list[OutboxRow]:
        """The rows that were written."""
        return [row for row, _ in self._rows]

    def write(self, rows: Sequence[OutboxRow], received: int) -> None:
        """Append rows that land at `received` (ms since 1970), on disk when this returns.

        Raises OSError if they, or those before them, could not be written.
        """
        settings = self._settings
        data = b"".join(landing_line(row, settings, received=received) for row in rows)
        if not self._rows:
            first = rows[0]
            self._path = self._folder / f".{first.epoch}.{first.stream}.{first.seq}{OPEN}"
            self._make(self._path, data)
        else:
            if self._descriptor is None:
                self.restore()
            self._append(data)
        self._rows += [(row, received) for row in rows]
        self.bytes += len(data)
        self.restore()

    def restore(self) -> None:
        """Write the file again if it was deleted, renamed, replaced or truncated; raise OSError."""
        if self._is_in_place():
            return
        if self._identity is not None:
            logger.critical("%s was deleted, renamed or changed: it is written again", self._path)
        settings = self._settings
        lines = (landing_line(row, settings, received=received) for row, received in self._rows)
        hidden = self._path.with_name(self._path.name.removesuffix(OPEN) + TEMPORARY)
        make_folder(self._folder)
        self._make(hidden, b"".join(lines))

    def finish(self) -> Path:
        """Give the file its name, and return its path; raise OSError.

        Once it `has_landed` it belongs to its reader, even if the sync of its folder failed: a
        power failure then leaves the file under its hidden name, which `recover` finds.
        """
        self.restore()
        first, last = self._rows[0][0], self._rows[-1][0]
        name = file_name(first.epoch, first.stream, first.seq, last.seq, self.lines)
        self._path = self._path.rename(self._folder / name)
        self.has_landed = True
        self.close()
        sync_folder(self._folder)
        return self._path

    def close(self) -> None:
        """Close the file as it is. It may still be finished, or written to."""
        descriptor, self._descriptor = self._descriptor, None
        if descriptor is not None:
            with suppress(OSError):  # everything acknowledged was synced before
                os.close(descriptor)

    def _is_in_place(self) -> bool:
        try:
            found = self._path.lstat()
        except OSError:
            return False
        return (found.st_dev, found.st_ino) == self._identity and found.st_size == self.bytes

    def _append(self, data: bytes) -> None:
        """Append bytes to the file; raise OSError.

        After a failure nothing of it is trusted, unless it can be truncated to its previous
        content.
        """
        if self._descriptor is None:
            self._descriptor = os.open(self._path, _APPEND)
        identity, self._identity = self._identity, None
        try:
            write_all(self._descriptor, data)
            os.fdatasync(self._descriptor)
        except OSError:
            with suppress(OSError):  # mostly a full disk, where truncating needs no space
                os.ftruncate(self._descriptor, self.bytes)
                os.fdatasync(self._descriptor)
                self._identity = identity
            self.close()
            raise
        self._identity = identity

    def _make(self, made: Path, data: bytes) -> None:
        """Put a new file in place, on disk with its name, by way of `made`; raise OSError."""
        self.close()
        self._identity = None
        made.unlink(missing_ok=True)  # an existing file there may be a link
        self._descriptor = os.open(made, _APPEND | os.O_CREAT | os.O_EXCL, 0o666)
        try:
            write_all(self._descriptor, data)
            os.fdatasync(self._descriptor)
            found = os.fstat(self._descriptor)
            if made != self._path:
                made.rename(self._path)
            sync_folder(self._folder)
        except OSError:
            self.close()
            with suppress(OSError):  # its content is in memory or in the outbox
                made.unlink(missing_ok=True)
            raise
        self._identity = found.st_dev, found.st_ino


def write_all(descriptor: int, data: bytes) -> None:
    """Write all of `data`, however little a call accepts; raise OSError."""
    unwritten = memoryview(data)
    while unwritten:
        written = os.write(descriptor, unwritten)
        if not written:
            raise OSError(errno.EIO, "nothing of it was written")
        unwritten = unwritten[written:]


def recover(folder: Path) -> None:
    """Name the files that an earlier run left open, without what was not surely on disk.

    A line that the disk has damaged since stays, for the pipeline to quarantine. A file that cannot
    be read or named stays for the next attempt, and does not block others.
    """
    for path in sorted(folder.glob(f".*{OPEN}")):
        try:
            if path.is_file():
                _recover(path)
        except OSError as error:
            logger.critical(
                "%s holds messages that were acknowledged and cannot be named (%s): it is tried"
                " again at the next start of the link (tidegate docs disk)",
                path,
                error,
            )


def _recover(path: Path) -> None:
    data = path.read_bytes()
    records, size = whole_records(data)
    if not records:
        path.unlink()
        return
    with path.open("r+b") as file:
        file.truncate(size)
        os.fsync(file.fileno())
    lines = data.count(b"\n", 0, size)
    if lines > len(records):
        logger.critical("%s: %d of %d lines are damaged", path, lines - len(records), lines)
    first, last = records[0], records[-1]
    name = file_name(first["epoch"], first["stream"], first["seq"], last["seq"], lines)
    path.rename(path.with_name(name))
    sync_folder(path.parent)


def whole_records(data: bytes) -> tuple[list[dict[str, Any]], int]:
    """Return the records of an open file, and where the last one ends: a torn write may follow."""
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
