"""Parquet folders through Spark, under any name that a folder can have."""

import re
from collections.abc import Sequence
from pathlib import Path

from pyspark.sql import DataFrame, SparkSession

from pipeline.tables.columns import Columns, ddl

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


def write_folder(frame: DataFrame, folder: Path, partition: str | None = None) -> None:
    """Add the rows to a folder as Parquet, in sub-folders by the values of `partition`."""
    writer = frame.write.mode("append")
    if partition is not None:
        writer = writer.partitionBy(partition)
    writer.parquet(_uri(folder))


def _uri(path: Path) -> str:
    """Name a local or mounted path, whatever a cluster's default file system is."""
    return f"file://{path}"
