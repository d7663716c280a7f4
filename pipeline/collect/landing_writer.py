"""Landing files of a collector, of which no reader sees one that is not whole."""

import secrets
import time
from collections.abc import Iterable
from datetime import UTC, datetime

import pyarrow as pa
import pyarrow.parquet as pq

from pipeline.collect.message import Landed
from pipeline.landing.reports import COLLECTED, collected
from pipeline.place import Place
from pipeline.tables.columns import RECORD, arrow_schema

SCHEMA = arrow_schema(RECORD)


class LandingWriter:
    """Writes what messages gave into `<landing>/<yyyymmdd>/<name>-<boot>-<number>.parquet`.

    What gateways report goes to `<landing>/<yyyymmdd>/<ledger or clock>/collected.<number>.jsonl`,
    of all gateways together, and what is no record to a file of lines beside the Parquet file.
    """

    def __init__(self, landing: Place, name: str) -> None:
        self._landing = landing
        self._name = name
        self._boot = secrets.token_hex(4)
        self._number = 0

    def clear(self) -> None:
        """Remove the files that this collector left half written; nothing in them was acked."""
        folder = self._landing.folder
        for left in folder.glob(f"*/.{self._name}-*.tmp") if folder is not None else ():
            left.unlink()

    def write(self, messages: Iterable[Landed]) -> list[str]:
        """Put the messages into landing files, and return the files' names.

        After an OSError nothing of them may be acknowledged; some may have landed, and will
        be known again by their keys.
        """
        self._number += 1
        day = f"{datetime.now(UTC):%Y%m%d}"
        base = f"{day}/{self._name}-{self._boot}-{self._number:010d}"
        listed = list(messages)
        written = []
        records = [record for landed in listed for record in landed.records]
        if records:
            columns = zip(*records, strict=True)
            arrays = [pa.array(c, kind) for c, kind in zip(columns, SCHEMA.types, strict=True)]
            table = pa.Table.from_arrays(arrays, schema=SCHEMA)
            written.append(self._create_table(f"{base}.parquet", table))
        faults = [line for landed in listed for line in landed.faults]
        if faults:
            written.append(self._create(f"{base}.{len(faults)}.jsonl", faults))
        for kind, lines in _by_kind(listed).items():
            name = f"{day}/{kind}/{COLLECTED}.{_now()}-{self._boot}.jsonl"
            written.append(self._create(name, lines))
        return written

    def _create_table(self, name: str, table: pa.Table) -> str:
        sink = pa.BufferOutputStream()
        pq.write_table(table, sink, compression="zstd", write_page_checksum=True)
        self._landing.create(name, memoryview(sink.getvalue()))
        return name

    def _create(self, name: str, lines: list[bytes]) -> str:
        self._landing.create(name, b"".join(line + b"\n" for line in lines))
        return name


def _by_kind(messages: list[Landed]) -> dict[str, list[bytes]]:
    found: dict[str, list[bytes]] = {}
    for landed in messages:
        for gateway, kind, line in landed.reports:
            found.setdefault(kind, []).append(collected(gateway, line))
    return found


def _now() -> str:
    """Return a number of 18 digits that rises with time; the name of a start comes after it."""
    return f"{time.time_ns() // 10:018d}"
