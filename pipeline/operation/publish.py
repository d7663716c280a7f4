"""Copies of the tables in an object store, each brought up to its table in one step.

Every table is a Delta table there. Files go up first, then one commit shows the new ones and hides
those that are gone, so a reader sees a table as it was at one time. An object is named after the
time of its file's last change, so none ever gets another content.
"""

import os
import shutil
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import quote, unquote

from deltalake import DeltaTable, Schema
from deltalake.exceptions import TableNotFoundError
from deltalake.transaction import AddAction

from pipeline.errors import JobError, PipelineError
from pipeline.place import URLS, Place, place_of, store_errors
from pipeline.settings import Settings
from pipeline.tables import delta
from pipeline.tables.lease import held
from pipeline.tables.lock import COPY, locked

TRIES = 3
"""How often the tables are listed if other commands replace their files meanwhile."""
CHUNK = 8 * 1024 * 1024
UPLOADS = 8
"""Files that go up at the same time."""


class Published(NamedTuple):
    """What was done."""

    files: int
    bytes: int
    changed: int
    """Copies that differed from their tables."""
    tables: int


class LocalFile(NamedTuple):
    """A file of the disk as it was listed."""

    path: Path
    size: int
    mtime_ns: int


class ReplacedError(Exception):
    """A file is gone, or is another one than was listed."""


class Table(NamedTuple):
    """A table as it was listed."""

    name: str
    root: Path
    schema: Schema
    files: dict[str, LocalFile]
    """By their path in the copy."""


class Change(NamedTuple):
    """What brings a copy up to its table."""

    table: Table
    copy: DeltaTable | None
    """None if there is none yet."""
    new: dict[str, LocalFile]
    gone: list[dict[str, Any]]
    """Of `delta.shown`."""


def publish(
    settings: Settings, url: str, *, anew: bool = False, vacuum: int | None = None
) -> Published:
    """Bring the copies below a URL up to the tables; where nothing is new, nothing is written.

    A kill leaves each copy as it was or as it shall be. With `anew` copies of other tables become
    copies of these; `vacuum` removes objects that no copy has shown for so many hours. Raises
    PipelineError for what is no URL of a store or no copy of these tables, JobError where the
    store fails.
    """
    store = place_of(url)
    if store.folder is not None:
        raise PipelineError(f"{url} is not {URLS}")
    folder = settings.tables.folder
    if folder is None:
        raise PipelineError(f"{settings.tables} is in a store: readers find the tables there")
    _source(settings.tables)
    with locked(settings.checkpoints, COPY):
        for _ in range(TRIES):
            with held(settings.tables, wait=True):
                source, tables = _source(settings.tables), list(_listed(folder))
            try:
                with store_errors(f"cannot write to {store}"):
                    return _bring_up(store, tables, f"copy of {source}", anew=anew, vacuum=vacuum)
            except ReplacedError:
                continue
    raise JobError("the tables' files were replaced repeatedly while they were copied")


def _source(root: Place) -> str:
    """Return what tells these tables from all others."""
    if not delta.exists(root / "silver"):
        raise PipelineError(f"there are no tables in {root}")
    return str(delta.opened(root / "silver").metadata().id)


def _listed(root: Path) -> Iterator[Table]:
    for folder in (root / name for name in delta.tables_in(root)):
        table = delta.opened(folder)
        paths = [folder / unquote(each["path"]) for each in delta.shown(table)]
        yield Table(folder.name, folder, table.schema(), _files(folder, paths))


def _files(root: Path, paths: list[Path]) -> dict[str, LocalFile]:
    found = {}
    for path in paths:
        state = path.stat()
        name = f"{path.stem}-{state.st_mtime_ns:x}{path.suffix}"
        key = (path.parent / name).relative_to(root).as_posix()
        found[key] = LocalFile(path, state.st_size, state.st_mtime_ns)
    return found


def _bring_up(
    store: Place, tables: list[Table], mark: str, *, anew: bool, vacuum: int | None
) -> Published:
    changes = [_change(store, table, mark, anew=anew) for table in tables]
    uploads = [(c.table, key, file) for c in changes for key, file in c.new.items()]
    with ThreadPoolExecutor(UPLOADS) as pool:
        added = list(pool.map(lambda upload: _upload(store, *upload), uploads))
    actions: dict[str, list[AddAction]] = {table.name: [] for table in tables}
    for (table, _, _), action in zip(uploads, added, strict=True):
        actions[table.name].append(action)
    changed = sum([_commit(store, change, mark, actions[change.table.name]) for change in changes])
    if vacuum is not None:
        _vacuum(store, tables, vacuum)
    size = sum(file.size for _, _, file in uploads)
    return Published(len(uploads), size, changed, len(tables))


def _change(store: Place, table: Table, mark: str, *, anew: bool) -> Change:
    copy = _copy(store, table.name)
    if copy is None:
        return Change(table, None, table.files, [])
    metadata = copy.metadata()
    if metadata.partition_columns:
        raise PipelineError(f"{store / table.name} is of an earlier version: name another place")
    if metadata.description != mark and not anew:
        raise PipelineError(
            f"{store / table.name} is no copy of these tables: name another place, or "
            "let it become one with --replace"
        )
    listed = delta.shown(copy)
    held = {unquote(each["path"]) for each in listed}
    new = {key: file for key, file in table.files.items() if key not in held}
    return Change(table, copy, new, [e for e in listed if unquote(e["path"]) not in table.files])


def _copy(store: Place, name: str) -> DeltaTable | None:
    try:
        return DeltaTable(f"{store / name}", storage_options=store.options)
    except TableNotFoundError:
        return None


def _put(store: Place, file: LocalFile, key: str) -> None:
    """Copy a file, unless an object of this key and size is there.

    What an interruption leaves is no object, or one of another size, which is replaced.
    Raises ReplacedError if the file is not the one that was listed.
    """
    try:
        with file.path.open("rb") as source:
            found = os.fstat(source.fileno())
            if (found.st_size, found.st_mtime_ns) != (file.size, file.mtime_ns):
                raise ReplacedError(str(file.path))
            if store.files.get_file_info(store.path(key)).size != file.size:
                with store.files.open_output_stream(store.path(key)) as target:
                    shutil.copyfileobj(source, target, CHUNK)
    except FileNotFoundError as error:
        raise ReplacedError(str(file.path)) from error


def _upload(store: Place, table: Table, key: str, file: LocalFile) -> AddAction:
    """Copy a file; returns what shows it in the copy."""
    try:
        action = delta.addition(file.path, table.root)
    except FileNotFoundError as error:
        raise ReplacedError(str(file.path)) from error
    _put(store, file, f"{table.name}/{key}")
    return replace(action, path=quote(key, safe="/="))


def _commit(store: Place, change: Change, mark: str, added: list[AddAction]) -> bool:
    """Show a table's new state in its copy; returns whether that differs from what it showed."""
    table, copy = change.table, change.copy
    if copy is None:
        copy = DeltaTable.create(
            f"{store / table.name}",
            table.schema,
            description=mark,
            storage_options=store.options,
        )
    elif copy.metadata().description != mark:
        copy.alter.set_table_description(mark)
    delta.add_columns(copy, table.schema)
    if added or change.gone:
        delta.change(copy, added, delta.removals(change.gone))
    return bool(added or change.gone or change.copy is None)


def _vacuum(store: Place, tables: list[Table], hours: int) -> None:
    for copy in filter(None, [_copy(store, table.name) for table in tables]):
        copy.vacuum(hours, dry_run=False, enforce_retention_duration=False, full=True)
