"""Whose the rows of the quarantine are, and of which day."""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from datetime import UTC, date, datetime
from pathlib import Path
from typing import NamedTuple

import pyarrow as pa
import pyarrow.compute as pc

from pipeline.tables import on_disk
from pipeline.tables.columns import QUARANTINE
from pipeline.tables.state import QUARANTINED, Mark, State

COLUMNS = ["gateway_id", "received", "reason", "landing_file"]
"""What is read of the quarantine for it."""


class Quarantined(NamedTuple):
    """A row of the quarantine; `gateway` and `day` as far as they are known."""

    gateway: str | None
    day: date | None
    reason: str


def quarantined(rows: pa.Table, files: Mapping[str, Mark]) -> Iterator[Quarantined]:
    """Yield gateway, day and reason of rows of COLUMNS; `files` are the marks of landing files.

    A row that names no gateway is of the one whose folder its file lies in. Its day is that of
    its receipt, else that on which its file was last changed.
    """
    for row in rows.to_pylist():
        name = row["landing_file"] or ""
        ms = row["received"]
        if ms is None and name in files:
            ms = files[name].mtime / 1e6
        yield Quarantined(row["gateway_id"] or _folder(name), _day(ms), row["reason"])


def counted(rows: Iterable[Quarantined]) -> tuple[tuple[str | None, str | None, str, int], ...]:
    """Return how many rows there are of each gateway, day and reason."""
    found: Counter[tuple[str | None, str | None, str]] = Counter()
    for gateway, day, reason in rows:
        found[gateway, None if day is None else day.isoformat(), reason] += 1
    return tuple((*key, count) for key, count in found.items())


def counts(root: Path, known: State) -> pa.Table:
    """Return QUARANTINED, without the batch, of all that the quarantine holds.

    The state has it; only rows of batches of which it has not the counts are read.
    """
    table = known.quarantined
    summed = table.group_by("batch").aggregate([("count", "sum")]).to_pylist()
    there = {row["batch"]: row["count_sum"] for row in summed}
    batches = zip(
        *(known.batches[name].to_pylist() for name in ("batch", "quarantine")), strict=True
    )
    unknown = [batch for batch, rows in batches if rows and there.get(batch) != rows]
    parts = [
        table.filter(pc.invert(pc.is_in(table["batch"], value_set=pa.array(unknown, pa.int64()))))
    ]
    for batch in unknown:
        rows = on_disk.read_columns(
            on_disk.batch_folder(root, "quarantine", batch), QUARANTINE, COLUMNS
        )
        found = counted(quarantined(rows, _marks_of(rows, known)))
        of_batch = [dict(zip(QUARANTINED.names, (batch, *row), strict=True)) for row in found]
        parts.append(pa.Table.from_pylist(of_batch, schema=QUARANTINED))
    return pa.concat_tables(parts).drop_columns(["batch"])


def _marks_of(rows: pa.Table, known: State) -> Mapping[str, Mark]:
    """Return the marks of the landing files that give rows of COLUMNS their day."""
    undated = rows.filter(pc.is_null(rows["received"]))["landing_file"].drop_null()
    return known.marks(set(undated.to_pylist()))


def _folder(name: str) -> str | None:
    """Return the gateway's folder, None for a collector's, whose name is a date."""
    folder, slash, _ = name.partition("/")
    collected = len(folder) == 8 and folder.isdecimal()
    return folder if slash and not collected else None


def _day(ms: float | None) -> date | None:
    try:
        return None if ms is None else datetime.fromtimestamp(ms / 1000, UTC).date()
    except (ValueError, OverflowError, OSError):
        return None
