"""One batch from its landing files to a commit."""

import shutil
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from pyspark.sql import SparkSession

from pipeline.batches.bronze import write_landing
from pipeline.batches.judge import ARRIVED, EARLIER, LEFT_OUT, left_out
from pipeline.batches.plan import Batch
from pipeline.batches.reports import store_reports
from pipeline.batches.silver import DECODED, Judged, write_silver
from pipeline.clock.known import corrections_for
from pipeline.landing.listing import kind
from pipeline.records.declarations import FleetMapping
from pipeline.settings import Settings
from pipeline.tables import delta, islands, on_disk, staging
from pipeline.tables.columns import KEY, QUARANTINE, SILVER, arrow_schema, first_parts
from pipeline.tables.quarantined import COLUMNS, counted, quarantined
from pipeline.tables.state import Commit, State, write_commit

OpenSession = Callable[[], SparkSession]


class _Rows(NamedTuple):
    """A batch's files of records, and where their rows are written."""

    number: int
    names: list[str]
    staged: Path
    mappings: Sequence[FleetMapping]


def run_batch(
    open_session: OpenSession,
    settings: Settings,
    batch: Batch,
    state: State,
    mappings: Sequence[FleetMapping] = (),
) -> Commit:
    """Write a batch into all tables and commit it.

    `state` is what was committed before. Doing it again after `on_disk.remove_batches` gives the
    same rows, so it may stop anywhere: before the commit nothing of it counts. Payloads are read by
    `mappings`.
    """
    staged = staging.stage(settings.tables)
    reports = store_reports(settings, batch)
    names = [name for name in batch.files if kind(name) == "records"]
    if names:
        rows = _Rows(batch.number, names, staged, mappings)
        _write_records(open_session(), settings, rows, state)
    if reports.faults:
        on_disk.write_rows(staged / "quarantine", "quarantine", reports.faults)
    counts = {table: on_disk.count_rows(staged / table) for table in ("bronze", "quarantine")}
    bad = list(quarantined(_quarantine(staged), batch.files))
    added = _keys(staged / "silver")
    counts["silver"] = added.num_rows
    dates = set(pc.unique(added["event_date"].cast(pa.string())).to_pylist())
    dates.update(str(each.day) for each in bad if each.day is not None)
    _put_in_place(settings.tables, batch.number, staged)
    commit = Commit(
        batch.number,
        batch.files,
        counts,
        dict(Counter(each.reason for each in bad)),
        tuple(islands.each(islands.islands_of(added))),
        tuple(sorted(date or "" for date in dates)),
        reports.streams,
        reports.epochs,
        counted(bad),
    )
    write_commit(settings.checkpoints, commit)
    return commit


def _write_records(
    spark: SparkSession,
    settings: Settings,
    batch: "_Rows",
    state: State,
) -> None:
    staged = batch.staged
    write_landing(spark, settings.landing, batch.names, batch.number, staged, batch.mappings)
    arrived = on_disk.read_columns(
        staged / "decoded", DECODED, [*(name for name, _ in ARRIVED), "part"]
    )
    arrived = first_parts(arrived)
    if not arrived.num_rows:
        return
    times = pa.nulls(arrived.num_rows, pa.int64())
    found = islands.islands_of(arrived.append_column("event_ms", times))
    again = islands.overlapping(state.islands, found)
    losing = LEFT_OUT.empty_table()
    if again.num_rows or islands.numbers(found) < arrived.num_rows:
        losing = left_out(arrived, _earlier(settings.tables, again) if again.num_rows else ())
    seen: list[islands.Island] = []
    if again.num_rows and state.trimmed:  # silver may have deleted some
        known = islands.of_epochs(state.islands, pc.unique(again["epoch"]))
        seen = list(islands.each(known))
    corrections = corrections_for(settings.tables, found)
    write_silver(spark, staged, Judged(losing, seen, corrections, int(time.time() * 1000)))


def _earlier(root: Path, found: pa.Table) -> Iterator[pa.Table]:
    """Yield silver's rows that may share a key with the islands, file by file."""
    folder = root / "silver"
    schema = arrow_schema(EARLIER)
    first, last = pc.min(found["first"]), pc.max(found["last"])
    near = (
        pc.field("epoch").isin(pc.unique(found["epoch"]))
        & (pc.field("seq") >= first)
        & (pc.field("seq") <= last)
    )
    for each in delta.files(folder):
        if delta.may_hold(each, found):
            path = folder / each["path"]
            yield pq.read_table(path, schema=schema, filters=near, partitioning=None)


def _quarantine(staged: Path) -> pa.Table:
    return on_disk.read_columns(staged / "quarantine", QUARANTINE, COLUMNS)


def _keys(folder: Path) -> pa.Table:
    """Return the keys, the time and the date of silver's new rows."""
    rows = on_disk.read_columns(folder, SILVER, [*KEY, "event_time", "part"])
    rows = on_disk.with_ms(first_parts(rows))
    days = rows["event_ms"].cast(pa.timestamp("ms")).cast(pa.date32())
    return rows.append_column("event_date", days)


def _put_in_place(root: Path, batch: int, staged: Path) -> None:
    for table in on_disk.COUNTED:
        added = delta.adopt(staged / table, root / table, delta.prefix(batch))
        if added:
            delta.commit(root / table, added, batch=batch)
    shutil.rmtree(staged, ignore_errors=True)  # a job of Spark's may still be tidying up
