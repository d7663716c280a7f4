"""How many rows the landing files of a batch have, before they are read."""

from collections.abc import Callable, Iterable

from pyspark.sql import SparkSession

from pipeline.batches.bronze import PARQUET
from pipeline.batches.plan import Files
from pipeline.landing.landing_file import lines_of
from pipeline.landing.landing_parquet import count_rows
from pipeline.settings import Settings


def rows_of(
    open_session: Callable[[], SparkSession], settings: Settings, files: Files
) -> dict[str, int]:
    """Return the rows of each file by the name of one of lines, and by the footer of Parquet.

    Tasks read the footers, and only where there may be too many rows: a row takes more than a byte.
    """
    found = {name: lines_of(name) for name in files}
    columnar = [name for name in files if name.endswith(PARQUET)]
    if sum(files[name].size for name in columnar) > settings.batch.rows:
        landing = settings.landing

        def count(names: Iterable[str]) -> Iterable[tuple[str, int]]:
            return [(name, count_rows(landing, name)) for name in names]

        context = open_session().sparkContext
        listed = context.parallelize(columnar, context.defaultParallelism)
        found.update(listed.mapPartitions(count).collect())
    return found
