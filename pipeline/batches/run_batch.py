"""One batch from its landing files to a commit."""

import json
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import SparkSession

from pipeline.batches import numbers
from pipeline.batches.bronze import write_landing
from pipeline.batches.judge import ARRIVED, EARLIER, LEFT_OUT, left_out
from pipeline.batches.plan import Batch
from pipeline.batches.reports import store_reports
from pipeline.batches.silver import AT_ONCE, DECODED, DECODED_FOLDER, Judged, write_silver
from pipeline.clock.known import corrections_for
from pipeline.landing.listing import kind
from pipeline.place import Place
from pipeline.records.declarations import FleetMapping
from pipeline.settings import Settings
from pipeline.tables import delta, islands, on_disk, silver_numbers
from pipeline.tables.arrays import integers
from pipeline.tables.columns import (
    QUARANTINE,
    QUARANTINED,
    SILVER,
    arrow_schema,
    first_parts,
)
from pipeline.tables.quarantined import COLUMNS, Quarantined, by_reason, counted, quarantined
from pipeline.tables.state import Commit, State, note_files, write_commit
from pipeline.tables.task_files import TaskFiles, Written, discard, of, write_file, write_in_tasks

OpenSession = Callable[[], SparkSession]
_CONTESTED = "silver/contested"
"""Where tasks put rows whose numbers came more than once; `vacuum` removes what a kill leaves."""
_WANTED = {"part", *(name for name, _ in ARRIVED)}


class _Rows(NamedTuple):
    """A batch's files of records, and how they are read."""

    number: int
    names: list[str]
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
    root = settings.tables
    note_files(root, batch.number, batch.files)
    reports = store_reports(settings, batch)
    before = silver_numbers.of_epochs(root, reports.epochs)
    names = [name for name in batch.files if kind(name) == "records"]
    written: list[Written] = []
    if names:
        rows = _Rows(batch.number, names, mappings)
        written += _write_records(open_session(), settings, rows, state)
    if reports.faults:
        faults = pa.Table.from_pylist(reports.faults, arrow_schema(on_disk.TABLES["quarantine"]))
        written.append(write_file(root, "quarantine", faults))
    counts = {table: sum(f.rows for f in of(written, table)) for table in on_disk.COUNTED}
    bad: Counter[Quarantined] = Counter()
    for wrong in on_disk.parts_of(root, of(written, "quarantine"), QUARANTINE, COLUMNS):
        bad += quarantined(wrong, batch.files)
    arrived = islands.merged(numbers.read(root, written))
    counts["silver"] = islands.numbers(arrived)
    discard(root, of(written, numbers.FOLDER))
    dates = _dates(root, of(written, "silver"))
    dates.update(str(each.day) for each in bad if each.day is not None)
    for table in on_disk.COUNTED:
        if found := of(written, table):
            delta.commit(root / table, found, batch=batch.number)
    delta.append(root / "quarantined", QUARANTINED, counted(bad, batch.number), batch.number)
    silver_numbers.add(root, arrived, batch.number)
    commit = Commit(
        batch.number,
        len(batch.files),
        counts,
        by_reason(bad),
        tuple(sorted(dates)),
        tuple(sorted({*reports.streams, *islands.streams_of(arrived)})),
        tuple(sorted(islands.epochs_of(before))),
    )
    write_commit(root, commit)
    return commit


def _write_records(
    spark: SparkSession,
    settings: Settings,
    batch: _Rows,
    state: State,
) -> list[Written]:
    """Write the rows of a batch's records; return the files, of which no commit has one yet."""
    root = settings.tables
    raw = write_landing(spark, settings.landing, batch.names, batch.number, root, batch.mappings)
    decoded = of(raw, DECODED_FOLDER)
    came = numbers.read(root, raw)
    if not came.num_rows:
        return raw
    found = islands.merged(came)
    known = silver_numbers.of_epochs(root, islands.epochs_of(found))
    again = islands.twice(pa.concat_tables([found, known]))
    contested = islands.twice(pa.concat_tables([came, known]))
    losing = LEFT_OUT.empty_table()
    if contested.num_rows:
        earlier = _earlier(root, again) if again.num_rows else ()
        losing = left_out(_arrived(spark, root, decoded, contested), earlier)
    seen: list[islands.Island] = []
    if again.num_rows and state.trimmed:  # silver may have deleted some
        seen = list(islands.each(islands.of_epochs(known, pc.unique(again["epoch"]))))
    judged = Judged(losing, seen, corrections_for(root, found), int(time.time() * 1000))
    made = write_silver(spark, root, decoded, judged)
    read = [*decoded, *of(raw, numbers.FOLDER)]
    discard(root, read)
    return [*(each for each in raw if each not in read), *made]


def _arrived(
    spark: SparkSession, root: Place, decoded: Sequence[Written], spans: pa.Table
) -> pa.Table:
    """Return ARRIVED of the messages whose numbers are in some ranges, which tasks look for."""
    schema = arrow_schema(tuple(each for each in DECODED if each[0] in _WANTED))
    epochs = pc.unique(spans["epoch"])

    def write(names: Iterable[str], out: TaskFiles) -> None:
        for name in names:
            with delta.parquet(root / DECODED_FOLDER, name) as source:
                for part in source.iter_batches(AT_ONCE, columns=schema.names, use_threads=False):
                    rows = delta.typed(pa.Table.from_batches([part]), schema)
                    rows = rows.filter(pc.is_in(rows["epoch"], value_set=epochs))
                    inside = np.flatnonzero(islands.holding(rows, spans) >= 0)
                    out.add_table(_CONTESTED, rows.take(integers(inside)))

    names = [each.name for each in decoded]
    found = write_in_tasks(spark.sparkContext, names, len(names), root, write)
    rows = on_disk.read_columns(root, found, DECODED, schema.names)
    discard(root, found)
    return first_parts(rows)


def _earlier(root: Place, found: pa.Table) -> Iterator[pa.Table]:
    """Yield silver's rows that may share a key with the islands, file by file."""
    silver, schema = root / "silver", arrow_schema(EARLIER)
    epochs = pc.unique(found["epoch"])
    first, last = pc.min(found["first"]).as_py(), pc.max(found["last"]).as_py()
    wanted = {"epoch": sorted(epochs.to_pylist()), "seq": range(first, last + 1)}
    for each in delta.files(silver):
        if not delta.may_hold(each, found):
            continue
        with delta.parquet(silver, each["path"]) as source:
            groups = delta.groups(source, wanted)
            for part in source.iter_batches(
                delta.SCANNED, row_groups=groups, columns=schema.names, use_threads=False
            ):
                rows = delta.typed(pa.Table.from_batches([part]), schema)
                near = pc.is_in(rows["epoch"], value_set=epochs)
                for compare, end in ((pc.greater_equal, first), (pc.less_equal, last)):
                    near = pc.and_(near, compare(rows["seq"], end))
                yield rows.filter(near)


def _dates(root: Place, files: Sequence[Written]) -> set[str]:
    """Return the dates of silver's new rows; those of a file of one day stand in its statistics."""
    found: set[str] = set()
    several = []
    for each in files:
        said = json.loads(each.statistics)
        ends = {said[end].get("event_date") for end in ("minValues", "maxValues")}
        if len(ends) == 1 and None not in ends:
            found |= ends
        else:
            several.append(each)
    days = on_disk.read_columns(root, several, SILVER, ["event_date"])["event_date"]
    found.update(str(day) for day in pc.unique(days).to_pylist() if day is not None)
    return found
