"""Bronze to silver: the first row of each key, typed; the conflicting ones to the quarantine."""

from collections.abc import Sequence
from hashlib import sha256

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import Column, DataFrame, Observation, Window
from pyspark.sql.functions import col, count_if, expr, first, format_string, lit, row_number

from pipeline import reasons
from pipeline.clock.spans import Correction
from pipeline.clock.timing import TIME_MAX, TIME_MIN, timed
from pipeline.columns import BRONZE, KEY, SILVER, Columns, arrow_schema, names
from pipeline.reading import Reading, decode

ORDER = ("received", "landing_file", "line")
"""What makes a row of a batch the first of its key: the time of receipt (none stands last), then
the file's name and the line."""

READING: Columns = tuple(
    (name, dict(SILVER)[name])
    for name in (
        *("reading_time", "node", "quantity", "value", "value_text", "unit", "quality"),
        "decode_error",
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
DECODED: Columns = (*CARRIED, *READING)

_ERRORS = f"""CASE WHEN reading_time NOT BETWEEN {TIME_MIN} AND {TIME_MAX}
        AND time BETWEEN {TIME_MIN} AND {TIME_MAX}
    THEN concat_ws('; ', decode_error, 'time is not in milliseconds from 2000 to 2099')
    ELSE decode_error END"""
"""A wrong time is an error of the reading if its gateway's clock was set."""

_FIELDS = {name: place for place, name in enumerate(Reading._fields)}

DIGEST_BYTES = 8
"""Of the payload's SHA-256: two rows of a key conflict if theirs differ."""

EARLIER: Columns = tuple(
    (name, dict(SILVER)[name]) for name in (*KEY, "digest", "landing_file", "line")
)
"""What is read of silver's rows to judge rows that come after them."""


def judged(rows: DataFrame, earlier: DataFrame | None) -> DataFrame:
    """Return a batch's rows (DECODED) with the row that came first under their key.

    `earlier` are silver's rows (EARLIER) of other batches, at least those that share a key with
    the batch; None if no row does. Added are `place` (1 for the row that silver keeps) and
    `first_digest`, `first_file`, `first_line`.
    """
    of_key = Window.partitionBy(*KEY).orderBy(*(col(name).asc_nulls_last() for name in ORDER))
    placed = rows.select(
        "*",
        row_number().over(of_key).alias("place"),
        first("digest").over(of_key).alias("first_digest"),
        first("landing_file").over(of_key).alias("first_file"),
        first("line").over(of_key).alias("first_line"),
    )
    return placed if earlier is None else _after(placed, rows, earlier)


def _after(placed: DataFrame, rows: DataFrame, earlier: DataFrame) -> DataFrame:
    """Let the earlier rows of the same keys be the first ones."""
    renamed = {"digest": "known_digest", "landing_file": "known_file", "line": "known_line"}
    shared = earlier.join(rows.select(*KEY).distinct(), list(KEY), "left_semi")
    joined = placed.join(shared.withColumnsRenamed(renamed), list(KEY), "left")
    return joined.withColumns(
        {
            "place": expr("IF(known_file IS NULL, place, place + 1)"),
            "first_digest": expr("coalesce(known_digest, first_digest)"),
            "first_file": expr("coalesce(known_file, first_file)"),
            "first_line": expr("IF(known_file IS NULL, first_line, known_line)"),
        }
    ).drop(*renamed.values())


def firsts(rows: DataFrame, conflicting: Observation) -> DataFrame:
    """Return the rows that silver keeps; `conflicting` then tells how many `rows` conflict."""
    observed = rows.observe(conflicting, count_if(_conflicts()).alias("rows"))
    return observed.where(col("place") == 1)


def silver(decoded: DataFrame, known: Sequence[Correction], batch: int) -> DataFrame:
    """Return silver's rows of DECODED ones, with the times that clock records correct."""
    typed = (
        timed(decoded, known)
        .withColumn("decode_error", expr(_ERRORS))
        .withColumn("batch", lit(batch).cast("bigint"))
    )
    return typed.select(names(SILVER))


def conflicts(rows: DataFrame, bronze: DataFrame) -> DataFrame:
    """Return the quarantine's rows of judged ones: a known key with another payload."""
    origin = format_string("the key came first in %s, line %d", "first_file", "first_line")
    found = rows.where(_conflicts()).select("landing_file", "line", origin.alias("detail"))
    return bronze.join(found, ["landing_file", "line"]).select(
        *names(BRONZE),
        lit(reasons.KEY_CONFLICT).alias("reason"),
        "detail",
        lit(None).cast("binary").alias("raw"),
    )


def decoded(bronze: pa.RecordBatch) -> pa.RecordBatch:
    """Return bronze's rows as DECODED: without the payload, with what it says."""
    schema = arrow_schema(DECODED)
    payloads = bronze["payload"].to_pylist()
    messages = zip(bronze["topic"].to_pylist(), payloads, strict=True)
    readings = list(zip(*(decode(*message) for message in messages), strict=True))
    digests = pa.array([sha256(each).digest()[:DIGEST_BYTES] for each in payloads], pa.binary())
    sizes = pc.binary_length(bronze["payload"]).cast(pa.int64())
    made = {"digest": digests, "bytes": sizes}
    columns = [made[name] if name in made else bronze[name] for name in names(CARRIED)]
    for name, _ in READING:
        place = _FIELDS[name]
        values = readings[place] if readings else ()
        columns.append(pa.array(values, schema.field(name).type))
    return pa.RecordBatch.from_arrays(columns, schema=schema)


def _conflicts() -> Column:
    return col("digest") != col("first_digest")
