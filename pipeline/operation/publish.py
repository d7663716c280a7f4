"""Copies of the tables in an object store, each brought up to its table in one step.

Every table is a Delta table there. Files go up first, then one commit shows the new ones and hides
those that are gone, so a reader sees a table as it was at one time. An object is named after the
time of its file's last change, so none ever gets another content.
"""

import shutil
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from functools import partial
from pathlib import PurePosixPath
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


class SourceFile(NamedTuple):
    """A file of a table as it was listed."""

    table: Place
    name: str
    """Its path below the table."""
    size: int
    mtime_ns: int

    def is_there(self) -> bool:
        """Say whether it is still the file that was listed."""
        try:
            return _found(self.table, self.name) == self
        except FileNotFoundError:
            return False


class ReplacedError(Exception):
    """A file is gone, or is another one than was listed."""


class Table(NamedTuple):
    """A table as it was listed."""

    name: str
    schema: Schema
    files: dict[str, SourceFile]
    """By their path in the copy."""


class Change(NamedTuple):
    """What brings a copy up to its table."""

    table: Table
    copy: DeltaTable | None
    """None if there is none yet."""
    new: dict[str, SourceFile]
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
    if f"{store}/".startswith(f"{settings.tables}/"):
        raise PipelineError(f"{url} is where the tables are: name another place")
    _source(settings.tables)
    with locked(settings.checkpoints, COPY):
        for _ in range(TRIES):
            with held(settings.tables, wait=True):
                source, tables = _source(settings.tables), list(_listed(settings.tables))
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


def _listed(root: Place) -> Iterator[Table]:
    for name in delta.tables_in(root):
        table = delta.opened(root / name)
        paths = [unquote(each["path"]) for each in delta.shown(table)]
        with store_errors(f"cannot read {root / name}"), ThreadPoolExecutor(UPLOADS) as pool:
            files = list(pool.map(partial(_found, root / name), paths))
        yield Table(name, table.schema(), {_key(file): file for file in files})


def _found(table: Place, name: str) -> SourceFile:
    state = table.files.get_file_info(table.path(name))
    if not state.is_file:
        raise FileNotFoundError(f"{table}/{name}")
    return SourceFile(table, name, state.size, state.mtime_ns)


def _key(file: SourceFile) -> str:
    path = PurePosixPath(file.name)
    return str(path.with_name(f"{path.stem}-{file.mtime_ns:x}{path.suffix}"))


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


def _put(store: Place, file: SourceFile, key: str) -> None:
    """Copy a file, unless an object of this key and size is there.

    What an interruption leaves is no object, or one of another size, which is replaced.
    Raises ReplacedError if the file is not the one that was listed.
    """
    if not file.is_there():
        raise ReplacedError(file.name)
    if store.files.get_file_info(store.path(key)).size == file.size:
        return
    with (
        file.table.open(file.name) as source,
        store.files.open_output_stream(store.path(key)) as target,
    ):
        shutil.copyfileobj(source, target, CHUNK)


def _upload(store: Place, table: Table, key: str, file: SourceFile) -> AddAction:
    """Copy a file; returns what shows it in the copy."""
    try:
        action = delta.addition(file.table, file.name, file.size)
        _put(store, file, f"{table.name}/{key}")
    except FileNotFoundError as error:
        raise ReplacedError(file.name) from error
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
