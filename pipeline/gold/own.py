"""Gold tables by SQL of one's own over silver, a file a table."""

from deltalake import Schema
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.pandas.types import to_arrow_schema

from pipeline.errors import PipelineError
from pipeline.place import Place
from pipeline.tables import delta

DATE = "date"


def rows_of(spark: SparkSession, table: str, query: str) -> DataFrame:
    """Return what the query gives of the views; raises PipelineError."""
    try:
        rows = spark.sql(query)
    except PySparkException as error:
        said = str(error).strip().partition("\n")[0]
        raise PipelineError(f"{table}.sql: {said}") from None
    kind = dict(rows.dtypes).get(DATE, "date")
    if kind != "date":
        raise PipelineError(f"{table}.sql: its column date is {kind}, but must be a DATE")
    return rows


def is_new(table: Place, query: str) -> bool:
    """Say whether a table is not there, or has the rows of another query."""
    return not delta.exists(table) or delta.opened(table).metadata().description != query


def create(table: Place, rows: DataFrame) -> None:
    """Make the table with the columns of these rows, in place of one of another query.

    Its query is noted once its rows are in it, so that a kill before that makes it new again.
    """
    schema = Schema.from_arrow(to_arrow_schema(rows.schema))
    delta.make(table, schema, mode="overwrite")


def note(table: Place, query: str) -> None:
    """Note of which query the table has the rows."""
    if is_new(table, query):
        delta.describe(table, query)
