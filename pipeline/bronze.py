"""Landing files to rows: what is a record goes to bronze, the rest to the quarantine.

Python reads the lines, in Spark's tasks, because the contract is exact where Spark's JSON
reader is lenient: it takes text after the object, names in single quotes and 5 where text must
stand, replaces bytes that are not UTF-8, and does not say whether a file's last line is whole.
"""

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

import pyarrow as pa
from pyspark.sql import DataFrame, Observation, SparkSession
from pyspark.sql.functions import col, collect_set, when

from pipeline.arrow_batches import record_batches
from pipeline.columns import BRONZE, QUARANTINE, arrow_schema, ddl, names
from pipeline.landing_file import Row, read_landing_file
from pipeline.landing_parquet import read_landing_parquet

PARQUET = ".parquet"


def landing_rows(spark: SparkSession, landing: Path, files: Sequence[str]) -> DataFrame:
    """Return the rows of these files (paths below `landing`) with the quarantine's columns.

    A task opens its files itself, so all workers must see the landing folder at one path.
    """
    folder = str(landing)

    def read(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        names = [name for batch in batches for name in batch.column(0).to_pylist()]
        lines = [name for name in names if not name.endswith(PARQUET)]
        yield from record_batches(rows_of(Path(folder), lines), arrow_schema(QUARANTINE))
        for name in names:
            if name.endswith(PARQUET):
                yield from read_landing_parquet(Path(folder, name), name)

    listed = spark.createDataFrame([(name,) for name in files], "landing_file string")
    return listed.mapInArrow(read, ddl(QUARANTINE))


def records(rows: DataFrame, faulty: Observation) -> DataFrame:
    """Return bronze's rows; `faulty` then tells `files`, those that gave any other row."""
    reason = col("reason")
    file = when(reason.isNotNull(), col("landing_file"))
    observed = rows.observe(faulty, collect_set(file).alias("files"))
    return observed.where(reason.isNull()).select(names(BRONZE))


def faults(rows: DataFrame) -> DataFrame:
    """Return the quarantine's rows."""
    return rows.where(col("reason").isNotNull())


def rows_of(landing: Path, names: Iterable[str]) -> Iterator[Row]:
    """Yield the rows of these landing files of lines."""
    for name in names:
        with (landing / name).open("rb") as file:
            yield from read_landing_file(file, name)
