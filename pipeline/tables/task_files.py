"""The Parquet files that a Spark task writes itself, so that no row passes through Java."""

import json
import secrets
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from datetime import date
from types import TracebackType
from typing import TYPE_CHECKING, Any, NamedTuple, Self

import pyarrow as pa
import pyarrow.parquet as pq

from pipeline.place import Place, sync
from pipeline.tables import cycles

if TYPE_CHECKING:
    from pyspark import SparkContext

GROUP_ROWS = 50_000
GROUP_BYTES = 32 * 1024 * 1024
"""A row group is written once it has so many rows or bytes, and a reader may leave it out ..."""
WAITING_BYTES = 256 * 1024 * 1024
"""... or is the largest where all that wait have so many, which bounds a task's memory."""
STATISTICS = (
    *("gateway_id", "epoch", "stream", "seq", "batch", "received"),
    *("event_date", "date", "name"),
)
"""The columns whose lowest and highest value of a file stand in the log."""


class Written(NamedTuple):
    """A file that no reader of the table sees before a commit has it."""

    folder: str
    """Where it lies below the tables: mostly a table's name."""
    name: str
    size: int
    rows: int
    statistics: str
    """What the log says of its columns, as JSON."""


class NewFile:
    """A Parquet file under a name that no other has, below the folder of the tables."""

    def __init__(self, root: Place, folder: str, schema: pa.Schema, name: str = "") -> None:
        self._root, self._folder, self._name = root, folder, name or new_name()
        if root.folder is not None:
            (root.folder / folder).mkdir(parents=True, exist_ok=True)
        self._path = root.path(f"{folder}/{self._name}")
        self._footers: list[pq.FileMetaData] = []
        self._stream = root.files.open_output_stream(self._path)
        self._writer = pq.ParquetWriter(
            self._stream, schema, compression="zstd", metadata_collector=self._footers
        )

    def write(self, rows: pa.Table) -> None:
        """Add a row group."""
        with self._whole():
            self._writer.write_table(rows)

    def close(self) -> Written:
        """End the file, which is then on its disk; return what a commit of it needs."""
        with self._whole():
            self._writer.close()
            size = self._stream.tell()
            self._stream.close()
            if self._root.folder is not None:
                folder = self._root.folder / self._folder
                sync(folder / self._name)
                sync(folder)
        [footer] = self._footers
        return Written(self._folder, self._name, size, footer.num_rows, statistics_text(footer))

    def abandon(self) -> None:
        """End the file and remove it, as far as the disk or the store does that now."""
        for end in (self._writer.writer.close, self._stream.close):
            with suppress(OSError, pa.ArrowException):
                end()
        self._writer.is_open = False  # else it tries again when it is forgotten
        with suppress(OSError):
            self._root.files.delete_file(self._path)

    @contextmanager
    def _whole(self) -> Iterator[None]:
        try:
            yield
        except BaseException:
            self.abandon()
            raise


def new_name() -> str:
    """Return a file's name that no other attempt has."""
    return f"part-{secrets.token_hex(8)}.parquet"


def write_file(root: Place, folder: str, rows: pa.Table) -> Written:
    """Write rows as one file below the folder of the tables; return what to commit."""
    file = NewFile(root, folder, rows.schema)
    file.write(rows)
    return file.close()


def statistics_text(footer: pq.FileMetaData) -> str:
    """Return what the log says of a file: its rows, and STATISTICS as far as its footer does."""
    lowest: dict[str, object] = {}
    highest: dict[str, object] = {}
    for name in STATISTICS:
        found = ends(footer, name)
        if found:
            lowest[name] = _in_log(min(low for low, _ in found))
            highest[name] = _in_log(max(high for _, high in found))
    return json.dumps({"numRecords": footer.num_rows, "minValues": lowest, "maxValues": highest})


def ends(footer: pq.FileMetaData, name: str) -> list[tuple[Any, Any]]:
    """Return the lowest and highest value that a column has in the row groups of a file.

    Those without a value have none; there is none at all if a row group does not say.
    """
    places = [n for n in range(footer.num_columns) if footer.schema.column(n).path == name]
    found = []
    for group in range(footer.num_row_groups if places else 0):
        column = footer.row_group(group).column(places[0])
        statistics = column.statistics
        if statistics is not None and statistics.has_min_max:
            found.append((statistics.min, statistics.max))
        elif statistics is None or statistics.null_count != footer.row_group(group).num_rows:
            return []
    return found


def _in_log(value: object) -> object:
    """Return a lowest or highest value as the log writes it."""
    return value.isoformat() if isinstance(value, date) else value


class TaskFiles:
    """One new file in each of some folders below the tables, of one name in all of them.

    No attempt has the name of another, so one that is made again, for a dead worker or by chance
    twice, leaves files that no commit has: `vacuum` removes them.
    """

    def __init__(self, root: Place) -> None:
        self._root, self._name = root, new_name()
        self._files: dict[str, NewFile] = {}
        self._waiting: dict[str, list[pa.RecordBatch]] = {}
        self._sizes: Counter[str] = Counter()
        self.written: list[Written] = []
        """What to commit, once all rows are in the files."""

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if error is not None:
            for file in self._files.values():
                file.abandon()
            return
        for folder in self._waiting:  # one after the other, since there may be one for each date
            self._flush(folder)
            self.written.append(self._files.pop(folder).close())

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
        if folder not in self._files:
            self._files[folder] = NewFile(self._root, folder, waiting[0].schema, self._name)
        if waiting:
            self._files[folder].write(pa.Table.from_batches(waiting))
            waiting.clear()
            self._sizes[folder] = 0


def write_in_tasks(
    context: "SparkContext",
    items: Sequence[Any],
    tasks: int,
    root: Place,
    work: Callable[[Iterable[Any], TaskFiles], None],
) -> list[Written]:
    """Do work with all items, shared among so many tasks; return what they wrote below `root`.

    They are tasks of plain Python: a job of Spark SQL would cost its plan, and workers that load
    pandas.
    """

    def write(share: Iterable[Any]) -> Iterable[Written]:
        cycles.look_rarely()
        with TaskFiles(root) as out:
            work(share, out)
        return out.written

    return context.parallelize(items, max(1, tasks)).mapPartitions(write).collect()


def discard(root: Place, files: Iterable[Written]) -> None:
    """Remove files that no commit has, as far as that goes now: `vacuum` would do it later."""
    for each in files:
        with suppress(OSError):
            root.files.delete_file(root.path(f"{each.folder}/{each.name}"))


def of(written: Iterable[Written], folder: str) -> list[Written]:
    """Return those of the files that lie in a folder."""
    return [each for each in written if each.folder == folder]
