"""Delta tables without a jar: Spark writes the files, deltalake keeps the log.

A reader sees a table as of a commit of its log, so a batch is there wholly or not at all.
"""

import json
import secrets
import shutil
from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from urllib.parse import quote, unquote

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from deltalake import CommitProperties, DeltaTable, Schema, Transaction
from deltalake.transaction import AddAction, RemoveAction
from pyarrow.fs import LocalFileSystem, SubTreeFileSystem

from pipeline.tables.columns import Columns, arrow_schema
from pipeline.tables.staging import sync

NULL_PARTITION = "__HIVE_DEFAULT_PARTITION__"
STATISTICS = ("gateway_id", "epoch", "stream", "seq", "batch", "received")
"""The columns whose lowest and highest value of a file stand in the log."""
_SEQ = ("seq", "first", "last")
WRITER = "tidegate"
_PREFIX = "batch"
SCANNED = 1_000_000
"""Rows that a scan has in memory."""
EMPTY_LOG = 2
"""Files in the log of a table that never got a row: its schema, and an empty file."""


def exists(root: Path) -> bool:
    """Say whether there is a Delta table in the folder; a log without an entry is none.

    A disk that is full leaves one where a table was to be made.
    """
    return any((root / "_delta_log").glob("*.json"))


def create(root: Path, columns: Columns, partition: str | None = None) -> None:
    """Make the table unless it is there; a column that it does not have yet is added."""
    schema = arrow_schema(columns)
    if exists(root):
        add_columns(DeltaTable(root.as_uri()), Schema.from_arrow(schema))
        return
    partitions = [partition] if partition else None
    DeltaTable.create(root.as_uri(), Schema.from_arrow(schema), partition_by=partitions)
    if partition:  # readers of plain Parquet folders, too, then see the columns
        staged = root / ".empty"
        folder = staged / f"{partition}=1970-01-01"
        folder.mkdir(parents=True)
        in_files = tuple(column for column in columns if column[0] != partition)
        pq.write_table(arrow_schema(in_files).empty_table(), folder / "part.parquet")
        commit(root, adopt(staged, root, "empty"))
        shutil.rmtree(staged)


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


def remove_rows(root: Path, first: int, last: int) -> None:
    """Take the rows of batches out, their files too, and files that no commit shows."""
    listed = [each for each in files(root) if each["num_records"]]
    shown = {each["path"] for each in listed}
    for file in root.rglob(f"{_PREFIX}-*.parquet"):
        if (
            first <= int(file.name.split("-")[1]) <= last
            and quote(file.relative_to(root).as_posix(), safe="/=") not in shown
        ):
            file.unlink()
    table = DeltaTable(root.as_uri())
    if any(each.get("max.batch") is None or each["max.batch"] >= first for each in listed):
        table.delete(f"batch BETWEEN {first} AND {last}")
        table.vacuum(retention_hours=0, dry_run=False, enforce_retention_duration=False)


def prefix(batch: int) -> str:
    """Return how the names of a batch's files begin."""
    return f"{_PREFIX}-{batch:010d}"


def append(root: Path, columns: Columns, rows: Sequence[Mapping[str, object]]) -> None:
    """Add a few rows."""
    if rows:
        table = pa.Table.from_pylist(list(rows), schema=arrow_schema(columns))
        commit(root, [_write(root, table)])


def overwrite(root: Path, rows: pa.Table) -> None:
    """Put rows in the place of all that the table has, in one step."""
    commit(root, [_write(root, rows)], removals(files(root)))


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


def read_parts(
    root: Path, columns: Sequence[str], partition: str, values: Container[object]
) -> pa.Table:
    """Return some columns of the rows with these values of `partition`, by its files alone.

    `read` makes an expression of each file that the table has.
    """
    schema = pa.schema(DeltaTable(root.as_uri()).schema().to_arrow())
    kept = pa.schema([schema.field(name) for name in columns])
    parts = [pa.Table.from_batches([], kept)]
    for each in files(root):
        value = each.get(f"partition.{partition}")
        if value in values:
            with pq.ParquetFile(root / unquote(each["path"])) as file:
                part = file.read([name for name in columns if name != partition])
            known = pa.repeat(pa.scalar(value, kept.field(partition).type), part.num_rows)
            parts.append(part.append_column(kept.field(partition), known))
    return pa.concat_tables(parts, promote_options="permissive")


def scan(root: Path, columns: Sequence[str]) -> Iterator[pa.RecordBatch]:
    """Yield some columns of the table's rows, of those in the files, at most SCANNED at once."""
    for each in files(root):
        with pq.ParquetFile(root / unquote(each["path"])) as file:
            yield from file.iter_batches(SCANNED, columns=list(columns))


def read_all(root: Path) -> pa.Table:
    """Return all rows of a table without partitions.

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
        folder = file.parent.relative_to(staged)
        target = root / folder / f"{prefix}-{number:05d}.parquet"
        target.parent.mkdir(parents=True, exist_ok=True)
        sync(file)
        file.rename(target)
        sync(target.parent)
        actions.append(addition(target, root))
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
        partition_by=table.metadata().partition_columns,
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


def removals(
    found: Iterable[Mapping[str, Any]], partition: str | None = None
) -> list[RemoveAction]:
    """Return what hides these files, of `files`."""
    now = int(datetime.now(UTC).timestamp() * 1000)
    return [
        RemoveAction(
            path=quote(each["path"], safe="/=%"),
            deletion_timestamp=now,
            data_change=True,
            partition_values=_values(each, partition),
            size=each["size_bytes"],
        )
        for each in found
    ]


def _values(each: Mapping[str, Any], partition: str | None) -> dict[str, str | None]:
    if partition is None:
        return {}
    value = each.get(f"partition.{partition}")
    return {partition: None if value is None else str(value)}


def addition(file: Path, root: Path) -> AddAction:
    """Return what shows a file that lies in the table's folder."""
    partition = {}
    for part in file.parent.relative_to(root).parts:
        name, _, value = unquote(part).partition("=")
        partition[name] = None if value == NULL_PARTITION else value
    state = file.stat()
    return AddAction(
        path=quote(file.relative_to(root).as_posix(), safe="/="),
        size=state.st_size,
        partition_values=partition,
        modification_time=state.st_mtime_ns // 1_000_000,
        data_change=True,
        stats=json.dumps(_statistics(file)),
    )


def _statistics(file: Path) -> dict[str, object]:
    footer = pq.read_metadata(file)
    places = {footer.schema.column(n).path: n for n in range(footer.num_columns)}
    lowest: dict[str, object] = {}
    highest: dict[str, object] = {}
    for name in STATISTICS:
        groups = [
            footer.row_group(n).column(places[name]).statistics
            for n in range(footer.num_row_groups)
            if name in places
        ]
        if groups and all(group is not None and group.has_min_max for group in groups):
            lowest[name] = min(group.min for group in groups)
            highest[name] = max(group.max for group in groups)
    return {"numRecords": footer.num_rows, "minValues": lowest, "maxValues": highest}


def _sync_log(root: Path) -> None:
    log = root / "_delta_log"
    newest = max(log.glob("*.json"), default=None)
    if newest is not None:
        sync(newest)
    sync(log)
