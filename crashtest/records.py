"""What the gateway holds for the fleet, read from its files while it does not run."""

import json
import shutil
import sqlite3
from base64 import b64decode
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any, NamedTuple
from zlib import crc32

from crashtest.numbers import Received, note
from gateway.storage.engine.database import FILE_NAME
from gateway.uplink.landing.file import OPEN, whole_records

Key = tuple[str, str, int]
"""Epoch, stream and number: the name of a message for ever."""

ROWS = "SELECT epoch, stream, seq, time, payload FROM outbox"


class _Record(NamedTuple):
    key: Key
    time: int
    payload: bytes


class Records:
    """The outbox and the landing files together: each message must stay in one of them.

    `received` has the numbers by sender, each record once for each key, in the order of the
    keys. `findings` gets a sentence for a record that has vanished, or changed. Landing files
    are deleted once they were read, so that the card does not fill up.
    """

    def __init__(self, data: Path, landing: Path, scratch: Path, findings: list[str]) -> None:
        self.received: defaultdict[str, Received] = defaultdict(Received)
        self.waiting = 0
        self.landed = 0
        self._data = data
        self._landing = landing
        self._scratch = scratch
        self._findings = findings
        self._on_land: set[Key] = set()
        self._checksums: dict[Key, int] = {}

    def check(self) -> None:
        """Read what is on disk now."""
        new: list[_Record] = []
        for path in sorted(self._landing.glob("*/*.jsonl")):
            self._on_land.update(self._note(_records(path), new))
            path.unlink()
        for path in self._landing.glob(f"*/.*{OPEN}"):  # the next start gives them their names
            lines, _ = whole_records(path.read_bytes())
            self._on_land.update(self._note(map(_record, lines), new))
        waiting = self._note(self._rows(), new)
        self.waiting, self.landed = len(waiting), len(self._on_land)
        for key in sorted(self._checksums.keys() - self._on_land - waiting):
            self._findings.append(f"record {key} was in the outbox and is gone")
            del self._checksums[key]
        for record in _in_order(new):
            if fault := note(record.payload, self.received):
                self._findings.append(f"record {record.key}: {fault}")

    def _note(self, records: Iterable[_Record], new: list[_Record]) -> set[Key]:
        keys = set()
        for record in records:
            keys.add(record.key)
            checksum = crc32(record.payload)
            if record.key not in self._checksums:
                self._checksums[record.key] = checksum
                new.append(record)
            elif self._checksums[record.key] != checksum:
                self._findings.append(f"record {record.key} has two payloads")
        return keys

    def _rows(self) -> list[_Record]:
        """Return the outbox's rows, read from copies: what the gateway finds stays as it is."""
        if not (self._data / FILE_NAME).exists():
            return []
        self._scratch.mkdir(exist_ok=True)
        for suffix in ("", "-wal", "-shm"):
            copy = self._scratch / (FILE_NAME + suffix)
            copy.unlink(missing_ok=True)
            if suffix != "-shm" and (original := self._data / (FILE_NAME + suffix)).exists():
                shutil.copyfile(original, copy)
        with closing(sqlite3.connect(self._scratch / FILE_NAME)) as database:
            if not database.execute("SELECT 1 FROM sqlite_schema WHERE name = 'outbox'").fetchone():
                return []  # killed before its first start was done
            rows = database.execute(ROWS).fetchall()
        return [_Record((epoch, stream, seq), *more) for epoch, stream, seq, *more in rows]


def _records(path: Path) -> Iterator[_Record]:
    for text in path.read_text(encoding="utf-8").splitlines():
        yield _record(json.loads(text))


def _record(line: dict[str, Any]) -> _Record:
    key = (line["epoch"], line["stream"], line["seq"])
    return _Record(key, line["time"], b64decode(line["payload"]))


def _in_order(records: Sequence[_Record]) -> list[_Record]:
    """Return records by epoch, the earliest start first, and number."""
    starts: dict[str, int] = {}
    for record in records:
        epoch = record.key[0]
        starts[epoch] = min(record.time, starts.get(epoch, record.time))
    return sorted(records, key=lambda record: (starts[record.key[0]], record.key))
