"""`spark.read.format("tidegate")`: a gateway's SQLite file as a DataFrame.

from pipeline.outbox.data_source import TidegateDataSource
spark.dataSource.register(TidegateDataSource)
rows = spark.read.format("tidegate").option("gateway", "barn").load("/backup/tidegate.db")
"""

from collections.abc import Iterator
from pathlib import Path
from typing import cast

import pyarrow as pa
from pyspark.sql.datasource import DataSource, DataSourceReader, InputPartition
from pyspark.sql.types import StructType

from pipeline.errors import PipelineError
from pipeline.outbox.rows import ids, records
from pipeline.tables.columns import RECORD, arrow_schema, ddl

PARTITIONS = 8
"""Tasks that share a table; each opens the file itself, so all workers must see it."""

SCHEMA = arrow_schema(RECORD)


class Ids(InputPartition):
    """The rows with ids from `first` to `last`."""

    def __init__(self, first: int, last: int) -> None:
        super().__init__(first)
        self.first = first
        self.last = last


class TidegateReader(DataSourceReader):
    """Reads one table of a gateway's database."""

    def __init__(self, options: dict[str, str]) -> None:
        if "path" not in options or "gateway" not in options:
            raise PipelineError("format tidegate needs a path and the option gateway")
        self._database = Path(options["path"].removeprefix("file://"))
        self._table = options.get("table", "outbox")
        self._gateway = options["gateway"]

    def partitions(self) -> list[InputPartition]:
        """Return ranges of ids."""
        first, last = ids(self._database, self._table)
        if first > last:
            return [Ids(first, last)]  # Spark reads an empty list as a partition of its own
        step = max(1, -(-(last - first + 1) // PARTITIONS))
        return [Ids(low, min(low + step - 1, last)) for low in range(first, last + 1, step)]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """Yield the records of a range as Arrow batches."""
        asked = cast("Ids", partition)
        for rows in records(self._database, self._table, self._gateway, asked.first, asked.last):
            if rows:
                columns = zip(*rows, strict=True)
                arrays = [pa.array(c, t) for c, t in zip(columns, SCHEMA.types, strict=True)]
                yield pa.RecordBatch.from_arrays(arrays, schema=SCHEMA)


class TidegateDataSource(DataSource):
    """The format `tidegate`: options `gateway`, and `table` (outbox, rejected or history)."""

    @classmethod
    def name(cls) -> str:
        """Return the name of the format."""
        return "tidegate"

    def schema(self) -> str | StructType:
        """Return the columns of a landing record."""
        return ddl(RECORD)

    def reader(self, schema: StructType) -> DataSourceReader:  # noqa: ARG002 - the base class names it
        """Return what reads the file."""
        return TidegateReader(dict(self.options))
