"""Rows between Spark SQL and the Parquet files of a table, which Spark's tasks open by Arrow."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import DataFrame, SparkSession

from pipeline.place import Place
from pipeline.tables import cycles, delta
from pipeline.tables.arrow_batches import BATCH_ROWS_MAX
from pipeline.tables.columns import Columns, arrow_schema, ddl
from pipeline.tables.task_files import GROUP_ROWS, TaskFiles, Written

READ_ROWS = 10 * GROUP_ROWS
"""Rows of a file that one task reads, where the file has more."""
FILE = ("file", "string")
"""A column that `read_files` fills with the `path` of each row's file."""
_WRITTEN = "folder string, name string, size bigint, rows bigint, statistics string"
_KINDS = pa.schema(
    [(name, pa.int64() if name in ("size", "rows") else pa.string()) for name in Written._fields]
)


def read_files(
    spark: SparkSession,
    table: Place,
    files: Sequence[Mapping[str, Any]],
    columns: Columns,
    among: tuple[str, Sequence[Any]] | None = None,
) -> DataFrame:
    """Return the rows of some files (delta.files) of a table; no files give no rows.

    `among` names a column and some values of it: rows with others are left out.
    """
    schema = arrow_schema(columns)

    def read(parts: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        cycles.look_rarely()
        for part in parts:
            for each in part.to_pylist():
                yield from _rows(table, each, schema, among)

    shares = [
        (each["path"], share, count)
        for each in files
        for count in (max(1, -(-each["num_records"] // READ_ROWS)),)
        for share in range(count)
    ]
    if not shares:
        return spark.createDataFrame([], ddl(columns))
    # Of an RDD Spark does not know the size, so it sends no table to all workers for a join.
    spread = spark.sparkContext.parallelize(shares, len(shares))
    named = spark.createDataFrame(spread, "path string, share int, count int")
    return named.mapInArrow(read, ddl(columns))


def _rows(
    table: Place,
    file: Mapping[str, Any],
    schema: pa.Schema,
    among: tuple[str, Sequence[Any]] | None,
) -> Iterator[pa.RecordBatch]:
    """Yield the rows of each row group of a file that is in the share."""
    name, values = among or ("", ())
    with delta.parquet(table, file["path"]) as source:
        groups = delta.groups(source, {name: sorted(values)} if values else {})
        mine = [group for group in groups if group % file["count"] == file["share"]]
        here = [each for each in schema.names if each in source.schema_arrow.names]
        for part in source.iter_batches(
            BATCH_ROWS_MAX, row_groups=mine, columns=here, use_threads=False
        ):
            rows = delta.typed(pa.Table.from_batches([part]), schema)
            if FILE[0] in schema.names:
                named = pa.repeat(pa.scalar(file["path"]), rows.num_rows)
                rows = rows.set_column(schema.get_field_index(FILE[0]), FILE[0], named)
            if among is not None:
                wanted = pa.array(values, schema.field(name).type)
                rows = rows.filter(pc.is_in(rows[name], value_set=wanted))
            yield from rows.to_batches()


def write_rows(frame: DataFrame, root: Place, folder: str) -> list[Written]:
    """Write the rows as files in a folder below the tables; return what to commit."""

    def write(parts: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        cycles.look_rarely()
        with TaskFiles(root) as out:
            for part in parts:
                out.add(folder, part)
        found = [each._asdict() for each in out.written]
        yield pa.RecordBatch.from_pylist(found, schema=_KINDS)

    return [Written(*row) for row in frame.mapInArrow(write, _WRITTEN).collect()]
