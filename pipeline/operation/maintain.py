"""Fewer and larger files, and an end to what is too old."""

from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import NamedTuple

import pyarrow as pa
import pyarrow.compute as pc
from deltalake import DeltaTable, WriterProperties

from pipeline.gold import make as gold
from pipeline.gold.freshness import DATE
from pipeline.gold.windows import LOCAL
from pipeline.operation.full_disk import full_disk
from pipeline.settings import Settings
from pipeline.tables import delta, joined, on_disk, staging, state
from pipeline.tables.columns import BRONZE
from pipeline.tables.damage import silver_rows
from pipeline.tables.lock import locked
from pipeline.tables.state import State
from pipeline.tables.task_files import GROUP_ROWS

GOLD = (*gold.TABLES, LOCAL)
OTHERS = ("ledger", "clocks", "streams", "gaps", "boards", "assets", "freshness", "runs")
TABLES = ("silver", *GOLD, *OTHERS)
WRITER = WriterProperties(compression="ZSTD", max_row_group_size=GROUP_ROWS)
RETENTION_HOURS = 168
"""How long files that no table shows any more are kept for readers of an older state."""


class Done(NamedTuple):
    """What maintenance did."""

    files_before: int
    files_after: int
    rows_deleted: int


def compact(settings: Settings) -> Done:
    """Make many small files of each table few; rows stay as they are.

    Of a Delta table neighbours become one, so files still have few dates; of bronze and quarantine
    those of a day's batches do.
    """
    before = after = 0
    with full_disk(settings), locked(settings.checkpoints):
        for table in _present(settings.tables):
            found = DeltaTable(table.as_uri())
            before += len(found.file_uris())
            found.optimize.compact(target_size=delta.JOINED_BYTES, writer_properties=WRITER)
            found.create_checkpoint()
            after += len(found.file_uris())
        joined.resume(settings.tables, settings.checkpoints)
        staging.clear(settings.tables)
        before += _in_batches(settings.tables)
        joined.join_batches(settings.tables, settings.checkpoints, state.load(settings.checkpoints))
        after += _in_batches(settings.tables)
    return Done(before, after, 0)


def vacuum(settings: Settings, hours: int = RETENTION_HOURS) -> int:
    """Remove files that no table shows since so many hours; return how many."""
    removed = 0
    with full_disk(settings), locked(settings.checkpoints):
        for table in _present(settings.tables):
            gone = DeltaTable(table.as_uri()).vacuum(
                retention_hours=hours, dry_run=False, enforce_retention_duration=False
            )
            removed += len(gone)
    return removed


def keep(settings: Settings, days: int, now: datetime | None = None) -> Done:
    """Delete what is older than the last `days` days, in silver, gold, bronze and quarantine.

    A row of silver goes by its receipt, which no gateway's clock sets, or by its event date if
    nobody knows when it was received; gold goes by date. A batch of bronze or quarantine goes once
    all of its rows were received before. What is known of the numbers stays: a row that comes
    again is not taken for a new one.
    """
    now = now or datetime.now(UTC)
    now_ms = int(now.timestamp() * 1000)
    limit = (now - timedelta(days=days)).date()
    limit_ms = int(datetime(limit.year, limit.month, limit.day, tzinfo=UTC).timestamp() * 1000)
    unknown = f"(received IS NULL OR received > {now_ms}) AND event_date < DATE '{limit}'"
    older = {"silver": f"received < {limit_ms} OR ({unknown})"}
    older |= dict.fromkeys(GOLD, f"{DATE} < DATE '{limit}'")
    deleted = 0
    with full_disk(settings), locked(settings.checkpoints):
        joined.resume(settings.tables, settings.checkpoints)
        committed = state.load(settings.checkpoints)
        for table, rows in older.items():
            root = settings.tables / table
            if delta.exists(root):
                result = DeltaTable(root.as_uri()).delete(rows)
                deleted += result["num_deleted_rows"] or 0
        deleted += _drop_batches(settings.tables, committed, limit_ms, now_ms)
        _recount_silver(settings.tables, committed)
        committed.trimmed = True
        state.fold(settings.checkpoints, committed)
    return Done(0, 0, deleted)


def _present(root: Path) -> list[Path]:
    return [root / table for table in TABLES if delta.exists(root / table)]


def _in_batches(root: Path) -> int:
    return sum(1 for name in on_disk.IN_BATCHES for _ in on_disk.parquet_files(root / name))


def _drop_batches(root: Path, committed: State, limit_ms: int, now_ms: int) -> int:
    """Remove the folders of batches that were received before; their counts become 0."""
    dropped = 0
    rows = []
    for row in committed.batches.to_pylist():
        rows.append(row)
        folders = on_disk.folders_of(root, row["batch"], row["last"])
        if folders and _is_older(folders, limit_ms, now_ms):
            staging.discard(root, folders)
            dropped += sum(row[name] for name in on_disk.IN_BATCHES)
            rows[-1] = row | dict.fromkeys(on_disk.IN_BATCHES, 0)
    committed.batches = pa.Table.from_pylist(rows, schema=committed.batches.schema)
    return dropped


def _is_older(folders: list[Path], limit_ms: int, now_ms: int) -> bool:
    """Say whether all rows were received before; a receipt after `now_ms` does not count."""
    received = [
        on_disk.read_columns(folder, BRONZE, ["received"])["received"] for folder in folders
    ]
    times = pa.chunked_array([chunk for each in received for chunk in each.chunks], pa.int64())
    newest = pc.max(times.filter(pc.less_equal(times, now_ms)))
    return newest.as_py() is not None and newest.as_py() < limit_ms


def _recount_silver(root: Path, committed: State) -> None:
    counts = silver_rows(root, committed)
    rows = [row | {"silver": counts[row["batch"]]} for row in committed.batches.to_pylist()]
    committed.batches = pa.Table.from_pylist(rows, schema=committed.batches.schema)
