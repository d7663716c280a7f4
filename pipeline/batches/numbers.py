"""Which numbers rows have: tasks note them in ranges, so that the driver reads no keys of rows."""

from collections.abc import Iterable

import pyarrow as pa

from pipeline.place import Place
from pipeline.tables import islands, on_disk
from pipeline.tables.columns import ISLANDS, names
from pipeline.tables.task_files import GROUP_ROWS, TaskFiles, Written, of

FOLDER = "silver/numbers"
"""Where the ranges lie until the batch is committed; `vacuum` removes what a kill leaves."""


class Numbers:
    """Gathers the numbers of a task's rows; those that several rows have are in two ranges."""

    def __init__(self) -> None:
        self._waiting: list[pa.Table] = []
        self._rows = 0
        self._folded: list[pa.Table] = []

    def add(self, rows: pa.Table) -> None:
        """Take in rows with STREAM, `seq` and `event_ms`."""
        self._waiting.append(islands.spans_of(rows))
        self._rows += rows.num_rows
        if self._rows >= GROUP_ROWS:
            self._fold()

    def write(self, out: TaskFiles) -> None:
        """Write what was gathered."""
        self._fold()
        out.add_table(FOLDER, islands.folded(pa.concat_tables(self._folded)))

    def _fold(self) -> None:
        waiting = [pa.Table.from_batches([], islands.SCHEMA), *self._waiting]
        self._folded.append(islands.folded(pa.concat_tables(waiting)))
        self._waiting, self._rows = [], 0


def read(root: Place, files: Iterable[Written]) -> pa.Table:
    """Return the ranges that tasks wrote."""
    return on_disk.read_columns(root, of(files, FOLDER), ISLANDS, names(ISLANDS))
