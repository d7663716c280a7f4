"""Bronze to silver: the first row of each key, typed; the conflicting ones to the quarantine."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from hashlib import sha256

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import SparkSession

from pipeline.batches.numbers import Numbers
from pipeline.clock.spans import Correction
from pipeline.clock.timing import timed
from pipeline.place import Place
from pipeline.policy import in_range
from pipeline.records import reasons
from pipeline.records.payloads import Payloads
from pipeline.records.reading import Reading
from pipeline.tables import delta, on_disk
from pipeline.tables.arrays import Array, integers, numbers, runs, spread, strings
from pipeline.tables.columns import (
    BATCH,
    DIGEST_BYTES,
    KEY,
    QUARANTINE,
    SILVER,
    Columns,
    arrow_schema,
    first_parts,
    names,
)
from pipeline.tables.islands import Island, holders
from pipeline.tables.task_files import GROUP_ROWS, TaskFiles, Written, of, write_in_tasks

READING: Columns = tuple(
    (name, dict(SILVER)[name])
    for name in (
        *("reading_time", "node", "quantity", "instance", "value", "value_text", "value_exact"),
        *("unit", "quality", "decode_error"),
    )
)
"""The columns that `decode` gives."""

CARRIED: Columns = tuple(
    (name, dict(SILVER)[name])
    for name in (
        *KEY,
        "time",
        "received",
        "topic",
        "resent",
        "bytes",
        "digest",
        "landing_file",
        "line",
        "batch",
    )
)
MADE = frozenset(("part", *(name for name, _ in READING)))
DECODED: Columns = (*CARRIED, ("part", dict(SILVER)["part"]), *READING)
DECODED_FOLDER = "silver/decoded"
"""Where DECODED rows lie until silver has theirs; `vacuum` removes what a kill leaves."""

_WRONG_TIME = "time is not in milliseconds from 2000 to 2099"
AT_ONCE = 5 * GROUP_ROWS
"""Rows that a task has in memory at one time, and puts in the order of their dates."""

_FIELDS = {name: place for place, name in enumerate(Reading._fields)}

PLACE = ["landing_file", "line"]
"""What names a row of the landing files."""


@dataclass(frozen=True)
class Judged:
    """Which decoded rows become silver's, and by which corrections of their clocks."""

    losing: pa.Table
    """Rows that are left out (judge.LEFT_OUT)."""
    seen: Sequence[Island]
    """Numbers that are left out, since silver had them once."""
    known: Sequence[Correction]
    read_ms: int
    """When the rows were read."""


def write_silver(
    spark: SparkSession, tables: Place, decoded: Sequence[Written], judged: Judged
) -> list[Written]:
    """Write silver's rows, and the quarantine's, of files of DECODED rows and bronze's beside.

    numbers.FOLDER gets the numbers of silver's rows and their times.
    """

    def write(names: Iterable[str], out: TaskFiles) -> None:
        faults, numbers = judged.losing.filter(judged.losing["conflicts"]), Numbers()
        for name in names:
            for part in _parts_of(tables / DECODED_FOLDER, name):
                rows = silver(firsts(part, judged), judged.known, judged.read_ms)
                out.add_table("silver", rows)
                numbers.add(on_disk.with_ms(first_parts(rows)))
            for part in _parts_of(tables / "bronze", name) if faults.num_rows else ():
                out.add_table("quarantine", conflicts(part, faults))
        numbers.write(out)

    names = [each.name for each in of(decoded, DECODED_FOLDER)]
    return write_in_tasks(spark.sparkContext, names, len(names), tables, write)


def _parts_of(folder: Place, name: str) -> Iterator[pa.Table]:
    with delta.parquet(folder, name) as source:
        for part in source.iter_batches(AT_ONCE, use_threads=False):
            yield pa.Table.from_batches([part])


def firsts(rows: pa.Table, judged: Judged) -> pa.Table:
    """Return the rows but for those that are left out."""
    kept = holders(rows, judged.seen) < 0
    if judged.losing.num_rows:
        kept[numbers(_at(rows, judged.losing)["row"])] = False
    return rows if kept.all() else rows.take(integers(np.flatnonzero(kept)))


def silver(decoded: pa.Table, known: Sequence[Correction], read_ms: int) -> pa.Table:
    """Return silver's rows of DECODED ones read at `read_ms`, with the times that hold.

    They are in the order of their dates, so that a reader of one date leaves others out.
    """
    error = decoded["decode_error"]
    # A wrong time is an error of the reading if its gateway's clock was set.
    wrong = pc.and_not(in_range(decoded["time"]), in_range(decoded["reading_time"]))
    wrong = pc.and_(wrong, pc.is_valid(decoded["reading_time"]))
    more = pc.binary_join_element_wise(error, _WRONG_TIME, "; ", null_handling="skip")
    place = decoded.schema.get_field_index("decode_error")
    rows = decoded.set_column(place, "decode_error", pc.if_else(wrong, more, error))
    rows = timed(rows, known, read_ms).select(names(SILVER))
    dates = rows["event_date"]
    ends = pc.min_max(dates)
    return rows if ends["min"].equals(ends["max"]) else rows.take(pc.sort_indices(dates))


def conflicts(bronze: pa.Table, faults: pa.Table) -> pa.Table:
    """Return the quarantine's rows: those of a known key with another payload (LEFT_OUT)."""
    found = _at(bronze, faults)
    origin = [
        f"the key came first in {file}, line {line}"
        for file, line in zip(
            found["first_file"].to_pylist(), found["first_line"].to_pylist(), strict=True
        )
    ]
    rows = bronze.take(found["row"])
    made = {
        "reason": strings([reasons.KEY_CONFLICT] * len(origin)),
        "detail": strings(origin),
        "raw": pa.nulls(len(origin), pa.binary()),
    }
    schema = arrow_schema((*QUARANTINE, BATCH))
    columns = [made[name] if name in made else rows[name] for name in schema.names]
    return pa.Table.from_arrays(columns, schema=schema)


def _at(rows: pa.Table, places: pa.Table) -> pa.Table:
    """Return the places (LEFT_OUT) of rows, with the number of each `row`, in its order."""
    numbered = rows.select(PLACE).append_column("row", integers(np.arange(rows.num_rows)))
    return numbered.join(places, PLACE, join_type="inner").sort_by("row")


def decoded(bronze: pa.RecordBatch, payloads: Payloads) -> pa.RecordBatch:
    """Return bronze's rows as DECODED, one a reading: without the payload, with what it says."""
    schema = arrow_schema(DECODED)
    contents = bronze["payload"].to_pylist()
    readings, rows = payloads.of_batch(bronze["gateway_id"], bronze["topic"], contents)
    digests = pa.array([sha256(each).digest()[:DIGEST_BYTES] for each in contents], pa.binary())
    made = {"digest": digests, "bytes": pc.binary_length(bronze["payload"]).cast(pa.int64())}
    carried = [name for name in schema.names if name not in MADE]
    columns = {n: made[n] if n in made else bronze[n] for n in carried}
    if rows is None:
        columns["part"] = pa.repeat(pa.scalar(0, pa.int32()), len(contents))
    else:
        columns = {name: column.take(pa.array(rows)) for name, column in columns.items()}
        columns["part"], first = _parts(rows)
        columns["bytes"] = pc.if_else(first, columns["bytes"], pa.scalar(None, pa.int64()))
    values = list(zip(*readings, strict=True))
    for name, _ in READING:
        place = _FIELDS[name]
        columns[name] = pa.array(values[place] if values else (), schema.field(name).type)
    return pa.RecordBatch.from_arrays([columns[name] for name in schema.names], schema=schema)


def _parts(rows: Array) -> tuple[pa.Array, pa.Array]:
    """Return the number of each reading in its message, and whether it is the first."""
    begins = runs(rows)
    parts = np.arange(len(rows)) - spread(begins, begins, len(rows))
    return pa.array(parts, pa.int32()), pa.array(parts == 0)
