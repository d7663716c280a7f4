"""What the gateway holds for the fleet, read from its files while it does not run."""

import base64
import json
import shutil
import sqlite3
from collections import defaultdict
from contextlib import closing
from pathlib import Path

from gateway.cli.crashtest.numbers import Received, name_in
from gateway.storage.database import FILE_NAME

Key = tuple[str, str, int]
"""Epoch, stream and number: the name of a message for ever."""

ROWS = "SELECT epoch, stream, seq, time, payload FROM outbox"


class Records:
    """The outbox and the landing files together: each message must stay in one of them.

    `received` has the numbers by sender, each record once for each key, in the order of the
    keys. `findings` gets a sentence for a record that has vanished, or changed.
    """

    def __init__(self, data: Path, landing: Path, scratch: Path, findings: list[str]) -> None:
        self.received: defaultdict[str, Received] = defaultdict(Received)
        self.waiting = 0
        self.landed = 0
        self._data = data
        self._landing = landing
        self._scratch = scratch
        self._findings = findings
        self._files: set[Path] = set()
        self._on_land: set[Key] = set()
        self._payloads: dict[Key, bytes] = {}

    def look(self) -> None:
        """Read what is on disk now."""
        new: dict[Key, int] = {}  # key to time
        for path in sorted(set(self._landing.glob("*/*.jsonl")) - self._files):
            self._files.add(path)
            self._on_land.update(self._note(_records(path), new))
        waiting = self._note(self._rows(), new)
        self.waiting, self.landed = len(waiting), len(self._on_land)
        vanished = self._payloads.keys() - self._on_land - waiting
        for key in sorted(vanished):
            self._findings.append(f"record {key} was in the outbox and is gone")
            del self._payloads[key]
        for key in _in_order(new):
            if self._payloads.get(key):
                self._count(key)

    def _note(self, records: list[tuple[Key, int, bytes]], new: dict[Key, int]) -> set[Key]:
        for key, time, payload in records:
            before = self._payloads.setdefault(key, payload)
            if before is payload:
                new[key] = time
            elif before != payload:
                self._findings.append(f"record {key} has two payloads")
        return {key for key, _, _ in records}

    def _count(self, key: Key) -> None:
        try:
            sender, number = name_in(self._payloads[key])
        except ValueError as error:
            self._findings.append(f"record {key}: {error}")
            return
        self.received[sender].add(number)

    def _rows(self) -> list[tuple[Key, int, bytes]]:
        """Return the outbox's rows, read from copies: what the gateway finds stays as it is."""
        if not (self._data / FILE_NAME).exists():
            return []
        self._scratch.mkdir(exist_ok=True)
        for suffix in ("", "-wal"):
            copy = self._scratch / (FILE_NAME + suffix)
            copy.unlink(missing_ok=True)
            if (original := self._data / (FILE_NAME + suffix)).exists():
                shutil.copyfile(original, copy)
        with closing(sqlite3.connect(self._scratch / FILE_NAME)) as database:
            if not database.execute("SELECT 1 FROM sqlite_schema WHERE name = 'outbox'").fetchone():
                return []  # killed before its first start was done
            rows = database.execute(ROWS).fetchall()
        return [
            ((epoch, stream, seq), time, bytes(blob)) for epoch, stream, seq, time, blob in rows
        ]


def _records(path: Path) -> list[tuple[Key, int, bytes]]:
    lines = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
    return [
        ((line["epoch"], line["stream"], line["seq"]), line["time"], _payload(line))
        for line in lines
    ]


def _payload(line: dict[str, str]) -> bytes:
    return base64.b64decode(line["payload"])


def _in_order(new: dict[Key, int]) -> list[Key]:
    """Return keys by epoch, the earliest start first, and number."""
    starts: dict[str, int] = {}
    for (epoch, _, _), time in new.items():
        starts[epoch] = min(time, starts.get(epoch, time))
    return sorted(new, key=lambda key: (starts[key[0]], key))
