"""Fewer and larger files, and an end to what is too old."""

from datetime import UTC, datetime, timedelta
from typing import NamedTuple

import pyarrow as pa
import pyarrow.compute as pc

from pipeline.errors import PipelineError
from pipeline.gold import make as gold
from pipeline.gold.freshness import DATE
from pipeline.gold.windows import LOCAL
from pipeline.operation.begin import begin
from pipeline.operation.full_disk import working
from pipeline.place import Place
from pipeline.policy import TIME_MIN
from pipeline.settings import Settings
from pipeline.tables import delta, on_disk
from pipeline.tables.columns import BATCHES, arrow_schema, names
from pipeline.tables.state import State

GOLD = (*gold.TABLES, LOCAL)
RAW = ("bronze", "quarantine")
OTHERS = (
    *(table for table in on_disk.TABLES if table not in on_disk.COUNTED),
    *("assets", "freshness", "runs"),
)
TABLES = (*on_disk.COUNTED, *GOLD, *OTHERS)
RETENTION_HOURS = 168
"""How long files that no table shows any more are kept for readers of an older state."""


class Done(NamedTuple):
    """What maintenance did."""

    files_before: int
    files_after: int
    rows_deleted: int


def compact(settings: Settings) -> Done:
    """Make many small files of each table few; rows stay as they are.

    Neighbours become one, so files still have few dates and batches.
    """
    before = after = 0
    with working(settings):
        for table in _present(settings.tables):
            found = delta.opened(table)
            before += len(found.file_uris())
            found.optimize.compact(
                target_size=delta.JOINED_BYTES,
                writer_properties=delta.PROPERTIES,
                commit_properties=delta.properties(found),
            )
            found.create_checkpoint()
            after += len(found.file_uris())
    return Done(before, after, 0)


def vacuum(settings: Settings, hours: int = RETENTION_HOURS) -> int:
    """Remove files that no table shows since so many hours, or ever; return how many."""
    removed = 0
    with working(settings):
        for table in _present(settings.tables):
            gone = delta.opened(table).vacuum(
                retention_hours=hours, dry_run=False, enforce_retention_duration=False, full=True
            )
            removed += len(gone)
    return removed


def keep(settings: Settings, days: int, now: datetime | None = None) -> Done:
    """Delete what is older than the last `days` days, in silver, gold, bronze and quarantine.

    A row of silver goes by its receipt, or by its event date if nobody knows when it was received,
    as where a gateway without a clock lands its own files; gold goes by date. A batch of bronze or
    quarantine goes once all of its rows were received before, without a receipt once its landing
    files are older. What is known of the numbers stays: a row that comes again is not taken for a
    new one.
    """
    now = now or datetime.now(UTC)
    now_ms = int(now.timestamp() * 1000)
    limit = (now - timedelta(days=days)).date()
    limit_ms = int(datetime(limit.year, limit.month, limit.day, tzinfo=UTC).timestamp() * 1000)
    known = f"coalesce(received BETWEEN {TIME_MIN} AND {now_ms}, false)"
    by_date = f"NOT {known} AND event_date < DATE '{limit}'"
    older = {"silver": f"({known} AND received < {limit_ms}) OR ({by_date})"}
    older |= dict.fromkeys(GOLD, f"{DATE} < DATE '{limit}'")
    deleted = 0
    with working(settings):
        committed, _ = begin(settings)
        committed.trimmed = True  # before a number goes that is not to be taken for a new one
        committed.note()
        for table, rows in older.items():
            root = settings.tables / table
            if delta.exists(root):
                found = delta.opened(root)
                result = found.delete(rows, commit_properties=delta.properties(found))
                deleted += result["num_deleted_rows"] or 0
        old = _older(settings.tables, committed, limit_ms, now_ms)
        for table in (*RAW, "quarantined"):
            delta.remove(settings.tables / table, "batch", old)
        deleted += _recount(settings.tables, committed, old)
    return Done(0, 0, deleted)


def _present(root: Place) -> list[Place]:
    return [root / table for table in TABLES if delta.exists(root / table)]


def _older(root: Place, committed: State, limit_ms: int, now_ms: int) -> set[int]:
    """Return the batches of which all rows were received before; receipts that cannot be are none.

    A batch without any goes by the last change of its landing files.
    """
    newest: dict[int, int] = {}
    for table in RAW:
        for part in delta.scan(root / table, ["batch", "received"]):
            times = part["received"]
            can_be = pc.and_(pc.greater_equal(times, TIME_MIN), pc.less_equal(times, now_ms))
            known = pa.Table.from_batches([part]).set_column(
                1, "received", pc.if_else(can_be, times, 0).fill_null(0)
            )
            for row in known.group_by("batch").aggregate([("received", "max")]).to_pylist():
                newest[row["batch"]] = max(newest.get(row["batch"], 0), row["received_max"])
    if not all(newest.values()):
        changed: dict[int, int] = {}
        for part in committed.files_since(0):
            for row in part.group_by("batch").aggregate([("mtime", "max")]).to_pylist():
                ms = row["mtime_max"] // 1_000_000
                changed[row["batch"]] = max(ms, changed.get(row["batch"], ms))
        newest = {batch: ms or changed.get(batch, now_ms) for batch, ms in newest.items()}
    return {batch for batch, received in newest.items() if received < limit_ms}


def _recount(root: Place, committed: State, old: set[int]) -> int:
    """Count silver's rows anew, and none of old batches elsewhere; returns how many those were."""
    counts = on_disk.rows_by_batch(root / "silver")
    if on_disk.DAMAGED in counts.values():
        raise PipelineError(f"{root / 'silver'} is damaged: run `once --verify` first")
    rows, dropped = [], 0
    for row in committed.since(0, names(BATCHES)[1:]):
        new = row | {"silver": counts[row["batch"]]}
        if row["batch"] in old:
            dropped += sum(row[table] for table in RAW)
            new |= {**dict.fromkeys(RAW, 0), "reasons": []}
        if new != row:
            rows.append(new)
    other = pa.Table.from_pylist(rows, schema=arrow_schema(BATCHES))
    delta.overwrite_parts(root / "batches", other, "batch", {row["batch"] for row in rows})
    return dropped
