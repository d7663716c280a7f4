"""The Parquet files that a Spark task writes itself, so that no row passes through Java."""

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Self

import pyarrow as pa
import pyarrow.parquet as pq

from pipeline.tables import cycles

if TYPE_CHECKING:
    from pyspark import SparkContext

GROUP_ROWS = 50_000
GROUP_BYTES = 32 * 1024 * 1024
"""A row group is written once it has so many rows or bytes, and a reader may leave it out ..."""
WAITING_BYTES = 256 * 1024 * 1024
"""... or is the largest where all that wait have so many, which bounds a task's memory."""


class TaskFiles:
    """One file in each of some folders; they get their names when all rows are in them.

    An attempt that fails leaves names that readers ignore. One that is made again, for a dead
    worker or by chance twice, replaces the same names with the same rows.
    """

    def __init__(self, root: Path, task: int, attempt: int) -> None:
        self._root = root
        self._name = f"task-{task:05d}.parquet"
        self._hidden = f".task-{task:05d}-{attempt}.tmp"
        self._writers: dict[str, pq.ParquetWriter] = {}
        self._waiting: dict[str, list[pa.RecordBatch]] = {}
        self._sizes: Counter[str] = Counter()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if error is not None:
            for writer in self._writers.values():
                writer.close()
            return
        for folder in self._waiting:  # one after the other, since there may be one for each date
            self._flush(folder)
            self._writers.pop(folder).close()
        for folder in self._waiting:
            (self._root / folder / self._hidden).rename(self._root / folder / self._name)

    def add(self, folder: str, rows: pa.RecordBatch) -> None:
        """Add rows to the file in a folder, all of one schema; no rows make no file."""
        if not rows.num_rows:
            return
        waiting = self._waiting.setdefault(folder, [])
        waiting.append(rows)
        self._sizes[folder] += rows.nbytes
        count = sum(batch.num_rows for batch in waiting)
        if count >= GROUP_ROWS or self._sizes[folder] >= GROUP_BYTES:
            self._flush(folder)
        elif self._sizes.total() >= WAITING_BYTES:
            self._flush(self._sizes.most_common(1)[0][0])

    def add_table(self, folder: str, rows: pa.Table) -> None:
        """Add rows to the file in a folder as `add` does, in as many row groups as they take."""
        for part in rows.combine_chunks().to_batches(max_chunksize=GROUP_ROWS):
            self.add(folder, part)

    def _flush(self, folder: str) -> None:
        waiting = self._waiting[folder]
        if folder not in self._writers:
            (self._root / folder).mkdir(parents=True, exist_ok=True)
            hidden = self._root / folder / self._hidden
            self._writers[folder] = pq.ParquetWriter(hidden, waiting[0].schema, compression="zstd")
        if waiting:
            self._writers[folder].write_table(pa.Table.from_batches(waiting))
            waiting.clear()
            self._sizes[folder] = 0


def write_in_tasks(
    context: "SparkContext",
    items: Sequence[str],
    tasks: int,
    root: Path,
    work: Callable[[Iterable[str], TaskFiles], None],
) -> None:
    """Do work with all items, shared among so many tasks; what they write is below `root`.

    They are tasks of plain Python: a job of Spark SQL would cost its plan, and workers that load
    pandas.
    """
    target = str(root)

    def write(number: int, share: Iterable[str]) -> Iterable[int]:
        from pyspark import TaskContext

        cycles.look_rarely()
        task = TaskContext.get()
        assert task is not None  # noqa: S101 - this runs in a task
        with TaskFiles(Path(target), number, task.taskAttemptId()) as out:
            work(share, out)
        return ()

    context.parallelize(items, tasks).mapPartitionsWithIndex(write).collect()
