"""The Parquet files that a Spark task writes itself, so that no row passes through Java."""

from pathlib import Path
from types import TracebackType
from typing import Self

import pyarrow as pa
import pyarrow.parquet as pq

GROUP_ROWS = 50_000
GROUP_BYTES = 32 * 1024 * 1024
"""A row group is written once it has so many rows or bytes, which bounds a task's memory."""


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

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        for folder, writer in self._writers.items():
            if error is None:
                self._flush(folder)
            writer.close()
        if error is None:
            for folder in self._writers:
                (self._root / folder / self._hidden).rename(self._root / folder / self._name)

    def add(self, folder: str, rows: pa.RecordBatch) -> None:
        """Add rows to the file in a folder, all of one schema; no rows make no file."""
        if not rows.num_rows:
            return
        if folder not in self._writers:
            (self._root / folder).mkdir(parents=True, exist_ok=True)
            hidden = self._root / folder / self._hidden
            self._writers[folder] = pq.ParquetWriter(hidden, rows.schema, compression="zstd")
        waiting = self._waiting.setdefault(folder, [])
        waiting.append(rows)
        count, size = sum(b.num_rows for b in waiting), sum(b.nbytes for b in waiting)
        if count >= GROUP_ROWS or size >= GROUP_BYTES:
            self._flush(folder)

    def _flush(self, folder: str) -> None:
        waiting = self._waiting[folder]
        if waiting:
            self._writers[folder].write_table(pa.Table.from_batches(waiting))
            waiting.clear()
