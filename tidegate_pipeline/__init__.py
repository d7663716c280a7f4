"""The fleet's pipeline in a Spark session that somebody else configured: a notebook or a job.

import tidegate_pipeline
totals = tidegate_pipeline.run(spark, "s3://fleet/landing", "/mnt/fleet/tables")
"""

from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from pipeline.operation.once import Totals


def run(
    spark: "SparkSession",
    landing: str | Path,
    tables: str | Path,
    *,
    gold: bool = True,
    verify: bool = False,
    readings: str | Path | None = None,
    assets: str | Path | None = None,
    gold_sql: str | Path | None = None,
    change_feed: bool = False,
    openlineage: str | None = None,
) -> "Totals":
    """Read the new landing files as `tidegate-pipeline once` does; return the rows of the tables.

    `landing` and `tables` are folders or URLs, and the other options are those of `once`. The
    session keeps its settings and is not stopped. Raises PipelineError if the caller has to change
    something, and JobError if Spark, a store or a disk gave up; what was committed stays.
    """
    from pipeline.operation.lineage import run_reported
    from pipeline.operation.once import make_how
    from pipeline.operation.session import session_beside
    from pipeline.place import place_of
    from pipeline.settings import make_settings

    own = session_beside(spark)
    settings = make_settings(place_of(landing), place_of(tables), own.sparkContext.master)
    how = make_how(
        gold=gold,
        verify=verify,
        readings=_path(readings),
        assets=_path(assets),
        gold_sql=_path(gold_sql),
        change_feed=change_feed,
        openlineage=openlineage,
    )
    return run_reported(settings, lambda: own, how)


def _path(where: str | Path | None) -> Path | None:
    return None if where is None else Path(where)
