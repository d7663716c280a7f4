"""Bronze to silver: the first row of each key, typed; the conflicting ones to the quarantine."""

from collections.abc import Sequence
from hashlib import sha256

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import Column, DataFrame
from pyspark.sql.functions import broadcast, expr, format_string, lit

from pipeline.clock.spans import Correction
from pipeline.clock.timing import timed
from pipeline.policy import TIME_MAX, TIME_MIN
from pipeline.records import reasons
from pipeline.records.payloads import Payloads
from pipeline.records.reading import Reading
from pipeline.tables.arrays import Array, runs, spread
from pipeline.tables.columns import BRONZE, DIGEST_BYTES, KEY, SILVER, Columns, arrow_schema, names

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
    )
)
MADE = frozenset(("part", *(name for name, _ in READING)))
DECODED: Columns = (*CARRIED, ("part", dict(SILVER)["part"]), *READING)

_ERRORS = f"""CASE WHEN reading_time NOT BETWEEN {TIME_MIN} AND {TIME_MAX}
        AND time BETWEEN {TIME_MIN} AND {TIME_MAX}
    THEN concat_ws('; ', decode_error, 'time is not in milliseconds from 2000 to 2099')
    ELSE decode_error END"""
"""A wrong time is an error of the reading if its gateway's clock was set."""

_FIELDS = {name: place for place, name in enumerate(Reading._fields)}

PLACE = ["landing_file", "line"]
"""What names a row of the landing files."""


def firsts(rows: DataFrame, losing: DataFrame) -> DataFrame:
    """Return the rows but for those that `losing` names (judge.LEFT_OUT)."""
    return rows.join(broadcast(losing), PLACE, "left_anti")


def silver(
    decoded: DataFrame, known: Sequence[Correction], batch: Column, read_ms: int
) -> DataFrame:
    """Return silver's rows of DECODED ones read at `read_ms`, with the times that hold."""
    made = {"decode_error": expr(_ERRORS), "batch": batch}
    return timed(decoded, known, read_ms).withColumns(made).select(names(SILVER))


def conflicts(bronze: DataFrame, losing: DataFrame) -> DataFrame:
    """Return the quarantine's rows: those of a known key with another payload."""
    origin = format_string("the key came first in %s, line %d", "first_file", "first_line")
    found = losing.where("conflicts").select(*PLACE, origin.alias("detail"))
    return bronze.join(broadcast(found), PLACE).select(
        *names(BRONZE),
        lit(reasons.KEY_CONFLICT).alias("reason"),
        "detail",
        lit(None).cast("binary").alias("raw"),
    )


def decoded(bronze: pa.RecordBatch, payloads: Payloads, into: Columns = DECODED) -> pa.RecordBatch:
    """Return bronze's rows as DECODED, one a reading: without the payload, with what it says.

    `into` may name further columns of theirs.
    """
    schema = arrow_schema(into)
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
