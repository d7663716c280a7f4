"""Gold tables by SQL of one's own over silver, a file a table."""

from pathlib import Path

from deltalake import DeltaTable, Schema
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.pandas.types import to_arrow_schema

from pipeline.errors import PipelineError
from pipeline.tables import delta

DATE = "date"


def rows_of(spark: SparkSession, table: str, query: str) -> DataFrame:
    """Return what the query gives of the view `silver`; raises PipelineError."""
    try:
        rows = spark.sql(query)
    except PySparkException as error:
        said = str(error).strip().partition("\n")[0]
        raise PipelineError(f"{table}.sql: {said}") from None
    kinds = dict(rows.dtypes)
    if kinds.get(DATE) != "date":
        wrong = kinds.get(DATE, "missing")
        raise PipelineError(f"{table}.sql: its column date is {wrong}, but must be a DATE")
    return rows


def is_new(table: Path, query: str) -> bool:
    """Say whether a table is not there, or has the rows of another query."""
    return not delta.exists(table) or DeltaTable(table.as_uri()).metadata().description != query


def create(table: Path, rows: DataFrame, query: str) -> None:
    """Make the table with the columns of these rows, in place of one of another query."""
    schema = Schema.from_arrow(to_arrow_schema(rows.schema))
    DeltaTable.create(
        table.as_uri(), schema, mode="overwrite", partition_by=[DATE], description=query
    )
