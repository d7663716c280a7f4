"""Parquet folders through Spark, under any name that a folder can have."""

import re
from collections.abc import Sequence
from pathlib import Path

from pyspark.sql import DataFrame, SparkSession

from pipeline.tables.columns import Columns, ddl
from pipeline.tables.task_files import GROUP_ROWS

_GROUP_LIMIT = "parquet.block.row.count.limit"
_GLOB = re.compile(r"[]\[{}*?\\]")


def read_folders(
    spark: SparkSession, base: Path, folders: Sequence[Path], columns: Columns
) -> DataFrame:
    """Return the rows of some folders below `base`; names such as `batch=3` give columns."""
    reader = spark.read.schema(ddl(columns)).option("basePath", _uri(base))
    return reader.parquet(*(_GLOB.sub(r"\\\g<0>", _uri(folder)) for folder in folders))


def read_files(
    spark: SparkSession, base: Path, files: Sequence[Path], columns: Columns
) -> DataFrame:
    """Return the rows of some files below `base`; no files give no rows."""
    if not files:
        return spark.createDataFrame([], ddl(columns))
    return read_folders(spark, base, files, columns)


def write_folder(frame: DataFrame, folder: Path) -> None:
    """Add the rows to a folder as Parquet."""
    frame.write.mode("append").option(_GROUP_LIMIT, GROUP_ROWS).parquet(_uri(folder))


def _uri(path: Path) -> str:
    """Name a local or mounted path, whatever a cluster's default file system is."""
    return f"file://{path}"
