"""Spark tasks of plain Python over silver's files, with one shuffle between two stages.

A job of Spark SQL would cost its plan, which for few rows takes longer than the rows.
"""

from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import date
from functools import partial
from typing import TYPE_CHECKING, ClassVar, NamedTuple, Protocol
from zlib import crc32

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from pipeline.gold.calendars import ordinal
from pipeline.place import Place
from pipeline.policy import Aliases
from pipeline.tables import cycles, delta
from pipeline.tables.arrays import Array, coded, dates, integers, strings, texts
from pipeline.tables.columns import SILVER, arrow_schema
from pipeline.tables.task_files import TaskFiles, Written

if TYPE_CHECKING:
    from pyspark import SparkContext

ROWS_A_TASK = 100_000
"""Rows that a task computes at once, on average. It has them in memory, all of a key together."""
_DAY = "event_date"
NO_ALIASES = Aliases()
ROWS_READ = 100_000
"""Rows of a file that a task reads at once."""


class SilverFile(NamedTuple):
    """A file of silver."""

    table: Place
    path: str
    """As the log has it."""
    rows: int


class Job(Protocol):
    """What tasks do with the rows of silver's files, each with those of a bucket of keys."""

    columns: ClassVar[Sequence[str]]
    """What they read."""
    keys: ClassVar[Sequence[str]]
    """The columns whose values bring rows together."""

    def write(self, rows: pa.Table, bucket: "Bucket", out: TaskFiles) -> None:
        """Write the files of a bucket's rows."""


@dataclass(frozen=True)
class Bucket:
    """A share of all keys; all rows of a key are in one."""

    number: int
    count: int

    def of(self, *columns: pa.ChunkedArray) -> Array:
        """Return the places of the rows with such keys that are in it."""
        return np.flatnonzero(bucket_of(columns, self.count) == self.number)


def run(
    context: "SparkContext",
    files: Sequence[SilverFile],
    days: Collection[date],
    job: Job,
    root: Place,
    aliases: Aliases,
) -> list[Written]:
    """Do a job on the rows that files have of these dates; return what the tasks wrote.

    Their files lie below `root`, where the tables are. They get the rows under the names of now.
    """
    count = max(1, -(-sum(file.rows for file in files) // ROWS_A_TASK))
    spread = context.parallelize(files, max(1, min(len(files), context.defaultParallelism)))
    share = partial(by_bucket, days=sorted(days), job=job, count=count, aliases=aliases)
    pairs = spread.mapPartitions(share)
    compute = partial(_compute, job=job, count=count, root=root)
    return pairs.partitionBy(count, int).mapPartitionsWithIndex(compute).collect()


def bucket_of(columns: Iterable[pa.ChunkedArray], count: int) -> Array:
    """Return the bucket of each row by its keys, the same in each process; null is as empty."""
    found: Array | None = None
    for column in columns:
        each = coded(column)
        hashes = [crc32((text or "").encode()) for text in each.values.to_pylist()]
        hashed = np.array([*hashes, crc32(b"")], np.uint64)[each.codes]
        found = hashed if found is None else found * np.uint64(31) + hashed
    assert found is not None  # noqa: S101 - there is a key
    return (found % np.uint64(count)).astype(np.int64)


def by_bucket(
    files: Iterable[SilverFile],
    days: Sequence[date],
    job: Job,
    count: int,
    aliases: Aliases = NO_ALIASES,
) -> Iterator[tuple[int, bytes]]:
    """Yield the rows that files have of these days by bucket, as Arrow's stream format."""
    cycles.look_rarely()
    wanted = dates(np.array([ordinal(day) for day in days]))
    for file in files:
        for part in _read(file, wanted, job.columns):
            rows = renamed(part, aliases)
            buckets = bucket_of([rows[key] for key in job.keys], count)
            for bucket in np.unique(buckets).tolist():
                places = np.flatnonzero(buckets == bucket)
                yield bucket, _packed(rows.take(integers(places)))


def renamed(rows: pa.Table, aliases: Aliases) -> pa.Table:
    """Return rows with `gateway_id` and `node`, under the names of now."""
    if aliases == NO_ALIASES:
        return rows
    gateway, node = coded(rows["gateway_id"]), coded(rows["node"])
    nodes = [None, *node.values.to_pylist()]
    pairs = gateway.codes * len(nodes) + node.codes + 1
    known, places = np.unique(pairs, return_inverse=True)
    gateways = gateway.values.to_pylist()
    now = [aliases.of(gateways[pair // len(nodes)], nodes[pair % len(nodes)]) for pair in known]
    missing = np.array([name is None for _, name in now], bool)[places]
    columns = {
        "gateway_id": texts(strings([name for name, _ in now]), places),
        "node": texts(strings([name or "" for _, name in now]), np.where(missing, -1, places)),
    }
    for name, column in columns.items():
        rows = rows.set_column(rows.schema.get_field_index(name), name, column)
    return rows


def _read(file: SilverFile, days: pa.Array, columns: Sequence[str]) -> Iterator[pa.Table]:
    """Yield a file's rows of these days in parts; a column that it does not have yet is null."""
    schema = _schema(columns)
    with delta.parquet(file.table, file.path) as source:
        here = {name for name in (*columns, _DAY) if name in source.schema_arrow.names}
        groups = delta.groups(source, {_DAY: days.to_pylist()})
        for batch in source.iter_batches(
            ROWS_READ, row_groups=groups, columns=list(here), use_threads=False
        ):
            rows = batch.filter(pc.is_in(batch[_DAY], value_set=days))
            yield delta.typed(pa.Table.from_batches([rows]), schema)


def _schema(columns: Sequence[str]) -> pa.Schema:
    whole = arrow_schema(SILVER)
    return pa.schema([whole.field(name) for name in columns])


def _packed(rows: pa.Table) -> bytes:
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, rows.schema) as writer:
        writer.write_table(rows)
    packed: bytes = sink.getvalue().to_pybytes()
    return packed


def _compute(
    number: int, pairs: Iterable[tuple[int, bytes]], job: Job, count: int, root: Place
) -> Iterable[Written]:
    cycles.look_rarely()
    parts = [pa.ipc.open_stream(packed).read_all() for _, packed in pairs]
    rows = pa.concat_tables([pa.Table.from_batches([], _schema(job.columns)), *parts])
    with TaskFiles(root) as out:
        job.write(rows, Bucket(number, count), out)
    return out.written
