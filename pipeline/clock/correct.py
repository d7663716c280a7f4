"""Rows of silver whose clock became known after they came: their times are worked out anew."""

import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import SparkSession

from pipeline.clock.known import corrections_for
from pipeline.clock.spans import Correction, Epoch
from pipeline.clock.timing import timed
from pipeline.place import Place
from pipeline.tables import delta, on_disk, silver_numbers
from pipeline.tables.columns import SILVER, arrow_schema
from pipeline.tables.task_files import GROUP_ROWS, TaskFiles, write_in_tasks

_DATED = ("epoch", "event_date")
AT_ONCE = 5 * GROUP_ROWS
"""Rows that a task has in memory at one time, and puts in the order of their dates."""


def correct(
    open_session: Callable[[], SparkSession],
    root: Place,
    epochs: set[Epoch],
    note: Callable[[set[str]], None],
) -> None:
    """Give silver's rows of these epochs the time that now holds.

    Files that hold such rows are replaced in one step; `note` gets the dates of such rows, old and
    new, before that.
    """
    silver = root / "silver"
    touched = silver_numbers.of_epochs(root, epochs)
    may_hold = [each for each in delta.files(silver) if delta.may_hold(each, touched)]
    before = {each["path"]: _dates(delta.parts(silver, each, _DATED), epochs) for each in may_hold}
    near = [each for each in may_hold if before[each["path"]]]
    if not touched.num_rows or not near:
        return
    corrections, read_ms = corrections_for(root, touched), int(time.time() * 1000)

    def write(files: Iterable[Mapping[str, Any]], out: TaskFiles) -> None:
        for file in files:
            for rows in _rows(silver, file):
                out.add_table("silver", retimed(rows, epochs, corrections, read_ms))

    context = open_session().sparkContext
    written = write_in_tasks(context, near, len(near), root, write)
    after = on_disk.read_columns(root, written, SILVER, _DATED)
    found = set().union(*before.values(), _dates(after.to_batches(), epochs))
    note({str(day) for day in found if day is not None})
    delta.commit(silver, written, near)


def _rows(silver: Place, file: Mapping[str, Any]) -> Iterator[pa.Table]:
    with delta.parquet(silver, file["path"]) as source:
        for part in source.iter_batches(AT_ONCE, use_threads=False):
            yield delta.typed(pa.Table.from_batches([part]), arrow_schema(SILVER))


def _dates(parts: Iterable[pa.RecordBatch], epochs: set[Epoch]) -> set[Any]:
    """Return the event dates of these epochs' rows, None for rows without one."""
    named = pa.array([epoch for _, epoch in epochs], pa.string())
    found: set[Any] = set()
    for part in parts:
        near = pc.is_in(part["epoch"].cast(pa.string()), value_set=named)
        found.update(pc.unique(part["event_date"].filter(near)).to_pylist())
    return found


def retimed(
    rows: pa.Table, epochs: set[Epoch], known: Sequence[Correction], read_ms: int
) -> pa.Table:
    """Return silver's rows, those of the epochs with the times that hold at `read_ms`.

    They are in the order of their dates.
    """
    asked = silver_numbers.are_of(rows, epochs)
    changed = timed(rows.filter(asked), known, read_ms).select(rows.schema.names)
    both = pa.concat_tables([rows.filter(pc.invert(asked)), changed.cast(rows.schema)])
    return both.take(pc.sort_indices(both["event_date"]))
