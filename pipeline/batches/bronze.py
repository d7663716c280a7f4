"""Landing files to rows: what is a record goes to bronze, the rest to the quarantine.

Python reads the lines, in Spark's tasks, because the contract is exact where Spark's JSON
reader is lenient: it takes text after the object, names in single quotes and 5 where text must
stand, replaces bytes that are not UTF-8, and does not say whether a file's last line is whole.
"""

from collections.abc import Iterable, Iterator, Sequence

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import SparkSession

from pipeline.batches.numbers import Numbers
from pipeline.batches.silver import DECODED_FOLDER, decoded
from pipeline.landing.landing_file import Row, read_landing_file
from pipeline.landing.landing_parquet import read_landing_parquet
from pipeline.place import Place
from pipeline.records.declarations import FleetMapping
from pipeline.records.payloads import Payloads
from pipeline.tables.arrow_batches import record_batches
from pipeline.tables.columns import BATCH, BRONZE, KEY, QUARANTINE, arrow_schema, names
from pipeline.tables.task_files import TaskFiles, Written, write_in_tasks

PARQUET = ".parquet"


def write_landing(
    spark: SparkSession,
    landing: Place,
    files: Sequence[str],
    batch: int,
    tables: Place,
    mappings: Sequence[FleetMapping] = (),
) -> list[Written]:
    """Write the rows of a batch's files (paths below `landing`) as files that no commit has yet.

    `bronze` gets the records, DECODED_FOLDER what silver needs of them, in files of the same names,
    `quarantine` the rest, and numbers.FOLDER the numbers of the records. A task opens and writes
    files itself, so all workers must see both.
    """

    def write(listed: Iterable[str], out: TaskFiles) -> None:
        payloads, numbers = Payloads(mappings), Numbers()
        for rows in landing_batches(landing, list(listed)):
            numbers.add(_write(rows, out, payloads, batch))
        numbers.write(out)

    context = spark.sparkContext
    return write_in_tasks(context, files, context.defaultParallelism, tables, write)


def landing_batches(landing: Place, files: Sequence[str]) -> Iterator[pa.RecordBatch]:
    """Yield the rows of landing files, with the quarantine's columns; no reason for a record."""
    lines = [name for name in files if not name.endswith(PARQUET)]
    yield from record_batches(rows_of(landing, lines), arrow_schema(QUARANTINE))
    for name in files:
        if name.endswith(PARQUET):
            yield from read_landing_parquet(landing, name)


def _write(rows: pa.RecordBatch, out: TaskFiles, payloads: Payloads, batch: int) -> pa.Table:
    """Write rows; return STREAM and `seq` of the records, and `event_ms`, which nobody knows."""
    good = rows
    if rows["reason"].null_count < rows.num_rows:
        right = pc.is_null(rows["reason"])
        good = rows.filter(right)
        out.add("quarantine", _of_batch(rows.filter(pc.invert(right)), batch))
    good = _of_batch(good.select(names(BRONZE)), batch)
    out.add("bronze", good)
    out.add(DECODED_FOLDER, decoded(good, payloads))
    keys = pa.Table.from_batches([good.select(KEY)])
    return keys.append_column("event_ms", pa.nulls(good.num_rows, pa.int64()))


def _of_batch(rows: pa.RecordBatch, batch: int) -> pa.RecordBatch:
    return rows.append_column(BATCH[0], pa.repeat(pa.scalar(batch), rows.num_rows))


def rows_of(landing: Place, names: Iterable[str]) -> Iterator[Row]:
    """Yield the rows of these landing files of lines."""
    for name in names:
        with landing.open(name) as file:
            yield from read_landing_file(file, name)
