"""Landing files of a collector: written beside, synced, and renamed into place."""

import os
import secrets
import time
from collections.abc import Iterable
from datetime import UTC, datetime
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from pipeline.collect.message import Landed
from pipeline.tables.columns import RECORD, arrow_schema
from pipeline.tables.staging import sync

SCHEMA = arrow_schema(RECORD)


class LandingWriter:
    """Writes what messages gave into `<landing>/<yyyymmdd>/<name>-<boot>-<number>.parquet`.

    What gateways tell goes to `<landing>/<gateway>/<ledger or clock>/collected.<number>.jsonl`,
    and what is no record to a file of lines beside the Parquet file.
    """

    def __init__(self, landing: Path, name: str) -> None:
        self._landing = landing
        self._name = name
        self._boot = secrets.token_hex(4)
        self._number = 0

    def clear(self) -> None:
        """Remove the files that this collector left half written; nothing in them was acked."""
        for left in self._landing.glob(f"*/.{self._name}-*.tmp"):
            left.unlink()

    def write(self, messages: Iterable[Landed]) -> list[Path]:
        """Put the messages on the disk, and return their files.

        After an OSError nothing of them may be acknowledged; some may have landed, and will
        be known again by their keys.
        """
        self._number += 1
        day = self._landing / datetime.now(UTC).strftime("%Y%m%d")
        base = f"{self._name}-{self._boot}-{self._number:010d}"
        listed = list(messages)
        written = []
        records = [record for landed in listed for record in landed.records]
        if records:
            columns = zip(*records, strict=True)
            arrays = [pa.array(c, kind) for c, kind in zip(columns, SCHEMA.types, strict=True)]
            table = pa.Table.from_arrays(arrays, schema=SCHEMA)
            written.append(self._place_table(day / f"{base}.parquet", table))
        faults = [line for landed in listed for line in landed.faults]
        if faults:
            written.append(self._place(day / f"{base}.{len(faults)}.jsonl", faults))
        for (gateway, kind), lines in _by_place(listed).items():
            folder = self._landing / gateway / kind
            written.append(self._place(folder / f"collected.{_now()}.jsonl", lines))
        return written

    def _place_table(self, path: Path, table: pa.Table) -> Path:
        temporary = self._temporary(path)
        try:
            pq.write_table(table, temporary, compression="zstd", write_page_checksum=True)
            return _rename(temporary, path)
        finally:
            temporary.unlink(missing_ok=True)

    def _place(self, path: Path, lines: list[bytes]) -> Path:
        temporary = self._temporary(path)
        try:
            temporary.write_bytes(b"".join(line + b"\n" for line in lines))
            return _rename(temporary, path)
        finally:
            temporary.unlink(missing_ok=True)

    def _temporary(self, path: Path) -> Path:
        path.parent.mkdir(parents=True, exist_ok=True)
        sync(path.parent.parent)
        return path.parent / f".{self._name}-{path.name}.tmp"


def _rename(temporary: Path, path: Path) -> Path:
    sync(temporary)
    os.link(temporary, path)  # unlike a rename it replaces nothing
    sync(path.parent)
    return path


def _by_place(messages: list[Landed]) -> dict[tuple[str, str], list[bytes]]:
    found: dict[tuple[str, str], list[bytes]] = {}
    for landed in messages:
        for gateway, kind, line in landed.reports:
            found.setdefault((gateway, kind), []).append(line)
    return found


def _now() -> str:
    """Return a number that rises with time and that no other collector takes, in 18 digits."""
    return f"{time.time_ns() // 1000}{secrets.randbelow(100):02d}"
