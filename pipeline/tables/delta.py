"""Delta tables without a jar: Spark's tasks write the files, deltalake keeps the log.

A reader sees a table as of a commit of its log, so a batch is there wholly or not at all.
"""

import json
import secrets
from bisect import bisect_left, bisect_right
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from datetime import UTC, date, datetime
from pathlib import Path
from typing import Any
from urllib.parse import quote, unquote

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from deltalake import CommitProperties, DeltaTable, Schema, Transaction
from deltalake.transaction import AddAction, RemoveAction
from pyarrow.fs import LocalFileSystem, SubTreeFileSystem

from pipeline.errors import PipelineError
from pipeline.place import sync
from pipeline.tables.arrays import strings
from pipeline.tables.columns import Columns, arrow_schema
from pipeline.tables.staging import stage
from pipeline.tables.task_files import GROUP_ROWS

STATISTICS = (
    *("gateway_id", "epoch", "stream", "seq", "batch", "received"),
    *("event_date", "date"),
)
"""The columns whose lowest and highest value of a file stand in the log."""
_SEQ = ("seq", "first", "last")
WRITER = "tidegate"
SCANNED = 1_000_000
"""Rows that a scan has in memory."""
EMPTY_LOG = 1
"""Files in the log of a table that never got a row: its schema."""
JOINED_BYTES = 64 * 1024 * 1024
"""`compact` joins files until they have so many bytes, which bounds what new rows of an old date
put in the place of others."""


def exists(root: Path) -> bool:
    """Say whether there is a Delta table in the folder; a log without an entry is none.

    A disk that is full leaves one where a table was to be made.
    """
    return any((root / "_delta_log").glob("*.json"))


def create(root: Path, columns: Columns) -> int:
    """Make the table unless it is there; a column that it does not have yet is added.

    Returns the highest number of a batch that `commit` noted, 0 if it noted none. Raises
    PipelineError for a file in its place, or a table of an earlier version, which had a folder for
    each date.
    """
    schema = Schema.from_arrow(arrow_schema(columns))
    if root.is_file():
        raise PipelineError(f"{root} is a file, not a folder")
    if not exists(root):
        DeltaTable.create(root.as_uri(), schema)
        return 0
    table = DeltaTable(root.as_uri())
    if table.metadata().partition_columns:
        raise PipelineError(f"{root} is of an earlier version: move {root.parent} away")
    add_columns(table, schema)
    return table.transaction_version(WRITER) or 0


def add_columns(table: DeltaTable, schema: Schema) -> None:
    """Add the columns of the schema that the table does not have yet."""
    known = {field.name for field in table.schema().fields}
    fields = [field for field in schema.fields if field.name not in known]
    if fields:
        table.alter.add_columns(fields)


def has_rows(root: Path) -> bool:
    """Say whether the table ever got a batch; looks at the log's folder alone."""
    log = root / "_delta_log"
    return log.is_dir() and sum(1 for _ in log.iterdir()) > EMPTY_LOG


def prefix(batch: int) -> str:
    """Return how the names of a batch's files begin; those of one made again have other names."""
    return f"batch-{batch:010d}-{secrets.token_hex(4)}"


def append(
    root: Path, columns: Columns, rows: Sequence[Mapping[str, object]], batch: int = 0
) -> None:
    """Add a few rows; `batch` is noted in the log."""
    if rows:
        table = pa.Table.from_pylist(list(rows), schema=arrow_schema(columns))
        commit(root, [_write(root, table)], batch=batch)


def overwrite(root: Path, rows: pa.Table) -> None:
    """Put rows in the place of all that the table has, in one step."""
    commit(root, [_write(root, rows)], removals(files(root)))


def overwrite_parts(root: Path, rows: pa.Table, name: str, values: Collection[Any]) -> None:
    """Put rows in the place of those with these values of the column `name`, in one step."""
    staged = stage(root.parent)
    if rows.num_rows:
        pq.write_table(rows, staged / "rows.parquet", compression="zstd")
    replace(root, staged, f"made-{staged.name.rpartition('-')[2]}", name, values)
    staged.rmdir()


def _write(root: Path, rows: pa.Table) -> AddAction:
    file = root / f"rows-{secrets.token_hex(8)}.parquet"
    pq.write_table(rows, file, compression="zstd")
    sync(file)
    return addition(file, root)


def read(root: Path, columns: Sequence[str] | None = None, filters: Any = None) -> pa.Table:
    """Return the table's rows as of now, those that the filters of pyarrow let through."""
    # Arrow's own file system: threads that call into Python abort the process at its end.
    local = SubTreeFileSystem(str(root), LocalFileSystem())
    wanted = None if columns is None else list(columns)
    return DeltaTable(root.as_uri()).to_pyarrow_table(
        columns=wanted, filters=filters, filesystem=local
    )


def within(
    found: Iterable[dict[str, Any]], name: str, values: Collection[Any]
) -> list[dict[str, Any]]:
    """Return those of `files` that may have one of the values in a column, by their statistics."""
    ordered = sorted(values)
    kept = []
    for each in found:
        lowest, highest = each.get(f"min.{name}"), each.get(f"max.{name}")
        if lowest is not None and bisect_left(ordered, lowest) < bisect_right(ordered, highest):
            kept.append(each)
    return kept


def read_parts(root: Path, columns: Sequence[str], name: str, values: Collection[Any]) -> pa.Table:
    """Return some columns of the rows with these values of the column `name`.

    `read` makes an expression of each file that the table has.
    """
    schema = pa.schema(DeltaTable(root.as_uri()).schema().to_arrow())
    kept = pa.schema([schema.field(column) for column in columns])
    wanted = _distinct(values, schema.field(name).type)
    parts = [pa.Table.from_batches([], kept)]
    for each in within(files(root), name, values):
        with pq.ParquetFile(root / unquote(each["path"])) as file:
            for part in file.iter_batches(GROUP_ROWS, columns=[*columns, name]):
                found = part.filter(pc.is_in(part[name], value_set=wanted))
                parts.append(typed(pa.Table.from_batches([found]), kept))
    return pa.concat_tables(parts)


def _distinct(values: Collection[Any], kind: pa.DataType) -> pa.Array:
    """Return values in order; `pa.array` would bring pandas into the memory of tasks for texts."""
    ordered = sorted(values)
    return strings(ordered) if pa.types.is_string(kind) else pa.array(ordered, kind)


def typed(rows: pa.Table, schema: pa.Schema) -> pa.Table:
    """Return rows of a file as the schema has them; a column that it does not have yet is null.

    Files that `compact` wrote have texts of a type that few functions of Arrow take.
    """
    there = set(rows.schema.names)
    columns = [
        rows[field.name].cast(field.type)
        if field.name in there
        else pa.nulls(rows.num_rows, field.type)
        for field in schema
    ]
    return pa.Table.from_arrays(columns, schema=schema)


def replace(root: Path, staged: Path, prefix: str, name: str, values: Collection[Any]) -> None:
    """Put the Parquet files of a staged folder in the place of the rows with these values.

    `values` are those of the column `name`; the other rows of the table's files are written again.
    """
    near = within(files(root), name, values)
    staged.mkdir(parents=True, exist_ok=True)
    gone = [each for each in near if only(each, name, values)]  # it may be unreadable
    schema = pa.schema(DeltaTable(root.as_uri()).schema().to_arrow())
    wanted = _distinct(values, schema.field(name).type)
    for number, each in enumerate(each for each in near if each not in gone):
        with pq.ParquetFile(root / unquote(each["path"])) as file:
            found = file.read([name])[name].cast(wanted.type)
            if pc.any(pc.is_in(found, value_set=wanted)).as_py():
                _write_rest(file, staged / f"rest-{number:05d}.parquet", schema, name, wanted)
                gone.append(each)
    added = adopt(staged, root, prefix)
    if added or gone:
        commit(root, added, removals(gone))


def remove(root: Path, name: str, values: Collection[Any]) -> None:
    """Take the rows with these values of the column `name` out, in one step."""
    if within(files(root), name, values):
        staged = stage(root.parent)
        replace(root, staged, f"rest-{staged.name.rpartition('-')[2]}", name, values)
        staged.rmdir()


def only(file: Mapping[str, Any], name: str, values: Collection[Any]) -> bool:
    """Say whether all rows of a file must have these values, by its statistics."""
    lowest, highest = file.get(f"min.{name}"), file.get(f"max.{name}")
    if isinstance(lowest, int) and isinstance(highest, int):
        return all(value in values for value in range(lowest, highest + 1))
    return False  # it may have rows without a value


def _write_rest(
    file: pq.ParquetFile, rest: Path, schema: pa.Schema, name: str, values: pa.Array
) -> None:
    """Write the rows of a file that have other values, if there are any."""
    writer = None
    for part in file.iter_batches(GROUP_ROWS):
        rows = typed(pa.Table.from_batches([part]), schema)
        others = rows.filter(pc.invert(pc.is_in(rows[name], value_set=values)))
        if others.num_rows:
            writer = writer or pq.ParquetWriter(rest, schema, compression="zstd")
            writer.write_table(others)
    if writer is not None:
        writer.close()


def scan(root: Path, columns: Sequence[str]) -> Iterator[pa.RecordBatch]:
    """Yield some columns of the table's rows, of those in the files, at most SCANNED at once."""
    for each in files(root):
        yield from parts(root, each, columns)


def parts(root: Path, file: Mapping[str, Any], columns: Sequence[str]) -> Iterator[pa.RecordBatch]:
    """Yield some columns of the rows of a file of `files`, at most SCANNED at once."""
    with pq.ParquetFile(root / unquote(file["path"])) as source:
        yield from source.iter_batches(SCANNED, columns=list(columns))


def read_all(root: Path) -> pa.Table:
    """Return all rows of a table.

    It takes a tenth of a second where `read` takes three, since that brings pandas into memory.
    """
    table = DeltaTable(root.as_uri())
    schema = pa.schema(table.schema().to_arrow())
    parts = [pa.Table.from_batches([], schema)]  # `empty_table` would bring pandas, too
    for each in files(root):
        with pq.ParquetFile(root / unquote(each["path"])) as file:
            parts.append(file.read())
    return pa.concat_tables(parts, promote_options="permissive")


def adopt(staged: Path, root: Path, prefix: str) -> list[AddAction]:
    """Move the Parquet files of a staged folder to the table's, and return what to commit."""
    actions = []
    for number, file in enumerate(sorted(staged.rglob("[!._]*.parquet"))):
        target = root / f"{prefix}-{number:05d}.parquet"
        sync(file)
        file.rename(target)
        actions.append(addition(target, root))
    sync(root)
    return actions


def commit(
    root: Path, add: Sequence[AddAction], remove: Sequence[RemoveAction] = (), batch: int = 0
) -> None:
    """Show new files and hide old ones in one step; `batch` is noted in the log."""
    change(DeltaTable(root.as_uri()), add, remove, batch)
    _sync_log(root)


def change(
    table: DeltaTable, add: Sequence[AddAction], remove: Sequence[RemoveAction], batch: int = 0
) -> None:
    """Do what `commit` does, wherever the table is."""
    properties = CommitProperties(app_transactions=[Transaction(WRITER, batch)] if batch else None)
    table.create_write_transaction(
        [*remove, *add],
        mode="append",
        schema=table.schema(),
        commit_properties=properties,
    )


def files(root: Path) -> list[dict[str, Any]]:
    """Return the table's files, with `path`, `size_bytes`, `num_records`, `min.seq` and so on."""
    return shown(DeltaTable(root.as_uri()))


def shown(table: DeltaTable) -> list[dict[str, Any]]:
    """Return what `files` does, wherever the table is."""
    found = table.get_add_actions(flatten=True)
    # `pa.table` would bring pandas into memory.
    rows: list[dict[str, Any]] = pa.RecordBatchReader.from_stream(found).read_all().to_pylist()
    return rows


def may_hold(file: Mapping[str, Any], islands: pa.Table) -> bool:
    """Say whether a file of `files` may hold a number of the islands, by what the log says."""
    mask = None
    for name, low, high in (("gateway_id",) * 3, ("epoch",) * 3, ("stream",) * 3, _SEQ):
        lowest, highest = file.get(f"min.{name}"), file.get(f"max.{name}")
        if lowest is None or highest is None:
            continue
        here = pc.and_(
            pc.less_equal(islands[low], pa.scalar(highest)),
            pc.greater_equal(islands[high], pa.scalar(lowest)),
        )
        mask = here if mask is None else pc.and_(mask, here)
    return mask is None or bool(pc.any(mask).as_py())


def removals(found: Iterable[Mapping[str, Any]]) -> list[RemoveAction]:
    """Return what hides these files, of `files`."""
    now = int(datetime.now(UTC).timestamp() * 1000)
    return [
        RemoveAction(
            path=quote(each["path"], safe="/=%"),
            deletion_timestamp=now,
            data_change=True,
            partition_values={},
            size=each["size_bytes"],
        )
        for each in found
    ]


def addition(file: Path, root: Path) -> AddAction:
    """Return what shows a file that lies in the table's folder."""
    state = file.stat()
    return AddAction(
        path=quote(file.relative_to(root).as_posix(), safe="/="),
        size=state.st_size,
        partition_values={},
        modification_time=state.st_mtime_ns // 1_000_000,
        data_change=True,
        stats=json.dumps(_statistics(file)),
    )


def _statistics(file: Path) -> dict[str, object]:
    footer = pq.read_metadata(file)
    lowest: dict[str, object] = {}
    highest: dict[str, object] = {}
    for name in STATISTICS:
        found = ends(footer, name)
        if found:
            lowest[name] = _in_log(min(low for low, _ in found))
            highest[name] = _in_log(max(high for _, high in found))
    return {"numRecords": footer.num_rows, "minValues": lowest, "maxValues": highest}


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


def _sync_log(root: Path) -> None:
    log = root / "_delta_log"
    newest = max(log.glob("*.json"), default=None)
    if newest is not None:
        sync(newest)
    sync(log)
