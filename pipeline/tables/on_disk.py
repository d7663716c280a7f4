"""The tables on disk, and what their files say.

Bronze and quarantine are Parquet in `<tables>/<table>/batch=<number>/`; the others are Delta.
"""

import os
import shutil
from collections.abc import Iterable
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from pipeline.errors import PipelineError
from pipeline.tables import delta, islands
from pipeline.tables.columns import (
    BOARDS,
    BRONZE,
    CLOCKS,
    GAPS,
    KEY,
    LEDGER,
    QUARANTINE,
    SILVER,
    STREAMS,
    Columns,
    arrow_schema,
)
from pipeline.tables.staging import discard, put_in_place, stage

IN_BATCHES: dict[str, Columns] = {"bronze": BRONZE, "quarantine": QUARANTINE}
"""In the order in which a batch is put in place."""

IN_DELTA: dict[str, Columns] = {
    "silver": SILVER,
    "ledger": LEDGER,
    "clocks": CLOCKS,
    "streams": STREAMS,
    "gaps": GAPS,
    "boards": BOARDS,
}

DAMAGED = -1
"""The rows of a batch with an unreadable file; no commit has this number."""


def create(root: Path) -> None:
    """Give each table its columns, so that it can be read before it has a row.

    A column of a later version of this program is added to tables that lack it.
    """
    if (root / "silver").is_dir() and not delta.exists(root / "silver"):
        if any((root / "silver").glob("batch=*")):
            raise PipelineError(f"{root / 'silver'} is of an earlier version: move {root} away")
        shutil.rmtree(root / "silver")
    for table, columns in IN_BATCHES.items():
        _create_batch_0(root, table, arrow_schema(columns))
    for table, columns in IN_DELTA.items():
        delta.create(root / table, columns)


def _create_batch_0(root: Path, table: str, schema: pa.Schema) -> None:
    """Put a batch without rows in place, from which readers take the table's columns."""
    folder = batch_folder(root, table, 0)
    if folder.exists():
        if pq.read_schema(folder / "empty.parquet").equals(schema):
            return
        discard(root, [folder])
    staging = stage(root)
    (staging / "batch").mkdir()
    pq.write_table(schema.empty_table(), staging / "batch" / "empty.parquet")
    put_in_place(staging / "batch", folder)
    shutil.rmtree(staging)


def batch_folder(root: Path, table: str, batch: int) -> Path:
    """Return where the rows of a batch lie in bronze or quarantine."""
    return root / table / f"batch={batch}"


def folders_of(root: Path, first: int, last: int) -> list[Path]:
    """Return the folders in bronze and quarantine of batches that were joined."""
    every = (batch_folder(root, t, n) for t in IN_BATCHES for n in range(first, last + 1))
    return [folder for folder in every if folder.exists()]


def remove_batch(root: Path, batch: int, last: int | None = None) -> None:
    """Take the rows of a batch out of all tables, and the files that a kill left of it.

    `last` is the last of the batches that were joined with it, if any were.
    """
    last = batch if last is None else last
    discard(root, folders_of(root, batch, last))
    for table in ("silver", "ledger", "clocks"):
        delta.remove_rows(root / table, batch, last)


def silver_islands(root: Path) -> pa.Table:
    """Return the islands of silver's rows, by the rows themselves."""
    found = islands.SCHEMA.empty_table()
    for part in delta.scan(root / "silver", [*KEY, "event_time"]):
        more = islands.islands_of(with_ms(pa.Table.from_batches([part])))
        found = islands.merged(pa.concat_tables([found, more]))
    return found


def with_ms(rows: pa.Table) -> pa.Table:
    """Return the rows with `event_ms` in place of `event_time`."""
    ms = rows["event_time"].cast(pa.timestamp("ms", tz="UTC"), safe=False).cast(pa.int64())
    return rows.drop_columns(["event_time"]).append_column("event_ms", ms)


def batches(folder: Path) -> set[int]:
    """Return the numbers of the batches but batch 0 that have a folder."""
    if not folder.is_dir():
        return set()
    with os.scandir(folder) as entries:
        numbers = [entry.name[6:] for entry in entries if entry.name.startswith("batch=")]
    return {int(number) for number in numbers if number.isdecimal()} - {0}


def count_rows(folder: Path) -> int:
    """Return the rows below a folder, 0 if there is none, DAMAGED if a file cannot be read."""
    try:
        return sum(pq.read_metadata(file).num_rows for file in parquet_files(folder))
    except (pa.ArrowInvalid, OSError):
        return DAMAGED


def landing_files(root: Path, batch: int) -> set[str]:
    """Return the landing files that the rows of a batch came from, as far as they are readable."""
    found: set[str] = set()
    for table in IN_BATCHES:
        try:
            rows = read_columns(batch_folder(root, table, batch), BRONZE, ["landing_file"])
        except pa.ArrowInvalid:
            continue
        found.update(pc.unique(rows["landing_file"]).to_pylist())
    return found - {None}


def read_columns(folder: Path, columns: Columns, wanted: list[str]) -> pa.Table:
    """Return some columns of the Parquet files below a folder."""
    schema = arrow_schema(tuple(column for column in columns if column[0] in wanted))
    parts = [
        pq.read_table(file, columns=schema.names, partitioning=None).cast(schema)
        for file in parquet_files(folder)
    ]
    return pa.concat_tables([schema.empty_table(), *parts])


def write_rows(folder: Path, table: str, rows: list[dict[str, object]]) -> None:
    """Add a few rows to a staged folder."""
    folder.mkdir(parents=True, exist_ok=True)
    found = pa.Table.from_pylist(rows, schema=arrow_schema(IN_BATCHES[table]))
    pq.write_table(found, folder / "told.parquet", compression="zstd")


def parquet_files(folder: Path) -> Iterable[Path]:
    """Return the Parquet files below a folder; none if there is none."""
    return sorted(folder.rglob("[!._]*.parquet"))
