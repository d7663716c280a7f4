"""Bronze to silver: the first row of each key, typed; the conflicting ones to the quarantine."""

from collections.abc import Iterator

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import Column, DataFrame, Observation, Window
from pyspark.sql.functions import col, count_if, first, format_string, lit, row_number

from pipeline import reasons
from pipeline.columns import BRONZE, KEY, SILVER, arrow_schema, ddl, names
from pipeline.reading import decode

ORDER = ("batch", "received", "landing_file", "line")
"""What makes a row of a key the first: the earlier batch, and within one the time of receipt
(none stands last), then the file's name and the line."""

MESSAGE = ("topic", "payload", "time")
"""The arguments of `decode`."""

DECODED = ("node", "quantity", "value", "value_text", "unit", "quality", "decode_error")
"""The columns that are a reading's fields."""


def judged(rows: DataFrame, batch: int) -> DataFrame:
    """Return the rows of `batch` with their place among all rows of their key.

    `rows` has bronze's columns and `batch`; it holds the batch's rows and at least those of
    earlier batches that share a key with them. Added are `place` (1 for the first row of its
    key) and `first_payload`, `first_file`, `first_line` of that first row.
    """
    order = [col(name).asc_nulls_last() for name in ORDER]
    of_key = Window.partitionBy(*KEY).orderBy(*order)
    return rows.select(
        "*",
        row_number().over(of_key).alias("place"),
        first("payload").over(of_key).alias("first_payload"),
        first("landing_file").over(of_key).alias("first_file"),
        first("line").over(of_key).alias("first_line"),
    ).where(col("batch") == batch)


def silver(rows: DataFrame, conflicting: Observation) -> DataFrame:
    """Return silver's rows of judged ones; `conflicting` then tells how many `rows` conflict."""
    observed = rows.observe(conflicting, count_if(_conflicts()).alias("rows"))
    firsts = observed.where(col("place") == 1).select(*KEY, "received", *MESSAGE)
    return firsts.mapInArrow(_decode, ddl(SILVER))


def conflicts(rows: DataFrame) -> DataFrame:
    """Return the quarantine's rows of judged ones: a known key with another payload."""
    origin = format_string("the key came first in %s, line %d", "first_file", "first_line")
    return rows.where(_conflicts()).select(
        *names(BRONZE),
        lit(reasons.KEY_CONFLICT).alias("reason"),
        origin.alias("detail"),
        lit(None).cast("binary").alias("raw"),
    )


def decoded(batch: pa.RecordBatch) -> pa.RecordBatch:
    """Return the silver rows of messages: columns KEY, `received` and MESSAGE."""
    messages = zip(*(batch.column(name).to_pylist() for name in MESSAGE), strict=True)
    readings = [decode(*message) for message in messages]
    times = pa.array([reading.event_time for reading in readings], pa.int64())
    columns = {name: batch.column(name) for name in (*KEY, "time", "topic")}
    columns["event_time"] = times.cast(pa.timestamp("ms", tz="UTC"))
    columns["event_date"] = times.cast(pa.timestamp("ms")).cast(pa.date32())
    columns["lateness_ms"] = pc.subtract(batch.column("received"), times)
    schema = arrow_schema(SILVER)
    for name in DECODED:
        values = [getattr(reading, name) for reading in readings]
        columns[name] = pa.array(values, schema.field(name).type)
    arrays = [columns[field.name].cast(field.type) for field in schema]
    return pa.RecordBatch.from_arrays(arrays, schema=schema)


def _decode(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    yield from map(decoded, batches)


def _conflicts() -> Column:
    return col("payload") != col("first_payload")
