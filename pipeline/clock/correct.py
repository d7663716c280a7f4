"""Rows of silver whose clock became known after they came: their times are worked out anew."""

import shutil
import time
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from urllib.parse import unquote

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.functions import broadcast

from pipeline.clock.known import corrections_for
from pipeline.clock.spans import Correction, Epoch
from pipeline.clock.timing import timed
from pipeline.tables import delta, islands, on_disk, staging
from pipeline.tables.columns import SILVER, ddl, names
from pipeline.tables.spark_files import read_files, write_folder

_DATED = pa.schema([("epoch", pa.string()), ("event_date", pa.date32())])


def correct(
    open_session: Callable[[], SparkSession],
    root: Path,
    known: pa.Table,
    epochs: set[Epoch],
    note: Callable[[set[str]], None],
) -> None:
    """Give silver's rows of these epochs the time that now holds.

    `known` are silver's islands. Files that hold such rows are replaced in one step; `note` gets
    the dates of such rows, old and new, before that.
    """
    touched = _of(known, epochs)
    near = [each for each in delta.files(root / "silver") if delta.may_hold(each, touched)]
    if not touched.num_rows or not near:
        return
    spark = open_session()
    rows = read_files(spark, root / "silver", [root / "silver" / f["path"] for f in near], SILVER)
    staged = staging.stage(root)
    result = retimed(rows, sorted(epochs), corrections_for(root, touched))
    write_folder(result, staged / "silver")
    dates = _dates([root / "silver" / unquote(each["path"]) for each in near], epochs)
    note(dates | _dates(on_disk.parquet_files(staged / "silver"), epochs))
    name = f"corrected-{staged.name.rpartition('-')[2]}"
    added = delta.adopt(staged / "silver", root / "silver", name)
    delta.commit(root / "silver", added, delta.removals(near))
    shutil.rmtree(staged)


def _dates(files: Iterable[Path], epochs: set[Epoch]) -> set[str]:
    """Return the event dates of these epochs' rows in some files."""
    found: set[str] = set()
    named = pa.array([epoch for _, epoch in epochs], pa.string())
    for path in files:
        with pq.ParquetFile(path) as file:
            rows = delta.typed(file.read(_DATED.names), _DATED)
        days = rows.filter(pc.is_in(rows["epoch"], value_set=named))["event_date"]
        found.update(str(day) for day in pc.unique(days).to_pylist() if day is not None)
    return found


def retimed(rows: DataFrame, epochs: list[Epoch], known: list[Correction]) -> DataFrame:
    """Return silver's rows, those of the epochs with the time that holds by the corrections."""
    asked = broadcast(rows.sparkSession.createDataFrame(epochs, "gateway_id string, epoch string"))
    keys = ["gateway_id", "epoch"]
    now = int(time.time() * 1000)

    def again(parts: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for part in parts:
            yield from timed(pa.Table.from_batches([part]), known, now).to_batches()

    chosen = rows.join(asked, keys, "left_semi").select(names(SILVER))
    changed = chosen.mapInArrow(again, ddl(SILVER))
    return rows.join(asked, keys, "left_anti").select(names(SILVER)).union(changed)


def _of(known: pa.Table, epochs: set[Epoch]) -> pa.Table:
    near = islands.of_epochs(known, pa.array(sorted({epoch for _, epoch in epochs})))
    named = pc.binary_join_element_wise(near["gateway_id"], near["epoch"], "/")
    return near.filter(pc.is_in(named, value_set=pa.array(["/".join(each) for each in epochs])))
