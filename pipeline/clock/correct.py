"""Rows of silver whose clock became known after they came: their times are worked out anew."""

import shutil
import time
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.functions import broadcast

from pipeline.clock.known import corrections_for
from pipeline.clock.spans import Correction, Epoch
from pipeline.clock.timing import timed
from pipeline.tables import delta, islands, staging
from pipeline.tables.columns import SILVER, names
from pipeline.tables.spark_files import read_files, write_folder


def correct(
    open_session: Callable[[], SparkSession], root: Path, known: pa.Table, epochs: set[Epoch]
) -> set[str]:
    """Give silver's rows of these epochs the time that now holds; return the dates touched.

    `known` are silver's islands. Files that hold such rows are replaced in one step.
    """
    touched = _of(known, epochs)
    near = [each for each in delta.files(root / "silver") if delta.may_hold(each, touched)]
    if not touched.num_rows or not near:
        return set()
    spark = open_session()
    rows = read_files(spark, root / "silver", [root / "silver" / f["path"] for f in near], SILVER)
    staged = staging.stage(root)
    result = retimed(rows, sorted(epochs), corrections_for(root, touched))
    write_folder(result, staged / "silver", partition="event_date")
    name = f"corrected-{staged.name.rpartition('-')[2]}"
    added = delta.adopt(staged / "silver", root / "silver", name)
    delta.commit(root / "silver", added, delta.removals(near, "event_date"))
    shutil.rmtree(staged)
    before = {str(each["partition.event_date"] or "") for each in near}
    return before | {each.partition_values["event_date"] or "" for each in added}


def retimed(rows: DataFrame, epochs: list[Epoch], known: list[Correction]) -> DataFrame:
    """Return silver's rows, those of the epochs with the time that holds by the corrections."""
    asked = broadcast(rows.sparkSession.createDataFrame(epochs, "gateway_id string, epoch string"))
    keys = ["gateway_id", "epoch"]
    now = int(time.time() * 1000)
    changed = timed(rows.join(asked, keys, "left_semi"), known, now).select(names(SILVER))
    return rows.join(asked, keys, "left_anti").select(names(SILVER)).union(changed)


def _of(known: pa.Table, epochs: set[Epoch]) -> pa.Table:
    near = islands.of_epochs(known, pa.array(sorted({epoch for _, epoch in epochs})))
    named = pc.binary_join_element_wise(near["gateway_id"], near["epoch"], "/")
    return near.filter(pc.is_in(named, value_set=pa.array(["/".join(each) for each in epochs])))
