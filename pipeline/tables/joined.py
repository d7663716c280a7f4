"""Bronze and quarantine with fewer files: the batches of a day become one, as one swap of folders.

A reader that lists a table's folder finds the files of before or those of after. What a kill leaves
is either not begun, and cleared away, or noted, and `resume` brings it to its end.
"""

import ctypes
import json
import os
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from pipeline.errors import PipelineError
from pipeline.tables import on_disk, staging, state
from pipeline.tables.columns import arrow_schema
from pipeline.tables.on_disk import IN_BATCHES, batch_folder, parquet_files
from pipeline.tables.state import State, renumbered
from pipeline.tables.task_files import TaskFiles

JOINED_BYTES = 128 * 1024 * 1024
"""Batches are joined until their files have so many bytes."""
_DAY_MS = 86_400_000
_NOTE = "joining.json"
_EXCHANGE = 2  # RENAME_EXCHANGE of renameat2(2)
_AT_CWD = -100


class Span(NamedTuple):
    """Committed batches that become one, which has the number of the first."""

    first: int
    last: int


def join_batches(root: Path, checkpoints: Path, committed: State) -> None:
    """Join what is small; nothing is done where there is nothing to join.

    Raises PipelineError where the disk cannot swap folders, or holds other rows than committed.
    """
    joining = {
        Span(group[0], committed.last_of(group[-1]) or group[-1]): group
        for group in _groups(root, committed)
        if _has_many_files(root, group)
    }
    if not joining:
        return
    staged = staging.stage(root)
    _check_disk(staged)
    for table in IN_BATCHES:
        _stage_table(root, staged, table, joining, committed)
    state.write_note(checkpoints / _NOTE, {"staged": staged.name, "spans": list(joining)})
    _finish(root, checkpoints, staged, list(joining), committed)


def resume(root: Path, checkpoints: Path) -> None:
    """Bring to its end what a kill interrupted; to be called before staged folders are cleared."""
    note = checkpoints / _NOTE
    if note.exists():
        noted = json.loads(note.read_text())
        spans = [Span(*span) for span in noted["spans"]]
        _finish(root, checkpoints, root / noted["staged"], spans, state.load(checkpoints))


def span_of(folder: Path) -> Span | None:
    """Return the batches of a folder by the name of its file, None if they were not joined."""
    for file in folder.glob("joined-*.parquet"):
        _, first, last = file.stem.split("-")
        return Span(int(first), int(last))
    return None


def _groups(root: Path, committed: State) -> Iterator[list[int]]:
    """Yield committed batches in turn, cut by size and by the day when rows were received.

    The first has rows in each table in which the others have, as `_keep_folders` needs it.
    """
    group: list[int] = []
    whole, day = 0, None
    held: set[str] = set()
    for number in sorted(committed.numbers()):
        size, received = _size_and_day(root, number)
        holds = {table for table in IN_BATCHES if batch_folder(root, table, number).exists()}
        another_day = None not in {day, received} and day != received
        if group and (another_day or whole + size > JOINED_BYTES or not holds <= held):
            yield group
            group, whole, day = [], 0, None
        held = held if group else holds
        group.append(number)
        whole += size
        day = received if day is None else day
    if group:
        yield group


def _size_and_day(root: Path, number: int) -> tuple[int, int | None]:
    files = [f for table in IN_BATCHES for f in parquet_files(batch_folder(root, table, number))]
    days = [day for file in files if (day := _day(file)) is not None]
    return sum(file.stat().st_size for file in files), max(days, default=None)


def _day(file: Path) -> int | None:
    """Return the last day on which rows of a file were received, None if nothing says so."""
    try:
        footer = pq.read_metadata(file)
    except (pa.ArrowInvalid, OSError) as error:
        raise _damaged(f"{file} cannot be read ({error})") from error
    place = footer.schema.names.index("received")
    found = [footer.row_group(n).column(place).statistics for n in range(footer.num_row_groups)]
    known = [each.max for each in found if each is not None and each.has_min_max]
    return max(known) // _DAY_MS if known else None


def _has_many_files(root: Path, group: list[int]) -> bool:
    """Say whether a table has more than one file of these batches."""
    folders = ([batch_folder(root, table, number) for number in group] for table in IN_BATCHES)
    return any(sum(1 for folder in each for _ in parquet_files(folder)) > 1 for each in folders)


def _stage_table(
    root: Path, staged: Path, table: str, joining: dict[Span, list[int]], committed: State
) -> None:
    """Make the table's folder as it shall be: joined files, and links to all others."""
    target = staged / table
    target.mkdir()
    gone = {number for numbers in joining.values() for number in numbers}
    _keep_folders(root, target, gone)
    for number in on_disk.batches(root / table) - gone | {0}:
        _link(batch_folder(root, table, number), batch_folder(staged, table, number))
    for span, numbers in joining.items():
        _write_joined(root, staged, table, span, numbers, committed)
    (target / f".{staged.name}").touch()  # by which `_finish` knows the folder again
    staging.sync_all(target)


def _keep_folders(root: Path, target: Path, numbers: set[int]) -> None:
    """Make empty folders for joined batches, one of which gets the rows.

    A reader lists a table's folder first and the folders in it later. If one of these were
    missing then, some readers would go on without its rows. So it finds either the file of
    before, which it cannot open after the swap, or no file, and all rows at the first batch.
    """
    for number in numbers & on_disk.batches(root / target.name):
        (target / f"batch={number}").mkdir()


def _link(folder: Path, target: Path) -> None:
    for file in parquet_files(folder):
        target.mkdir(exist_ok=True)  # not for an empty folder that an earlier join left
        os.link(file, target / file.name)


def _write_joined(
    root: Path, staged: Path, table: str, span: Span, numbers: list[int], committed: State
) -> None:
    files = [f for number in numbers for f in parquet_files(batch_folder(root, table, number))]
    folder = batch_folder(staged, table, span.first)
    rows = 0
    with TaskFiles(folder.parent, 0, 0) as joined:
        for batch in _rows(files, arrow_schema(IN_BATCHES[table])):
            joined.add(folder.name, batch)
            rows += batch.num_rows
    held = pc.is_in(committed.batches["batch"], value_set=pa.array(numbers, pa.int64()))
    expected = sum(committed.batches.filter(held)[table].to_pylist())
    if rows != expected:
        raise _damaged(
            f"{table} has {rows:,} rows of batches {span.first} to {span.last}, "
            f"{expected:,} were committed"
        )
    if rows:
        made = next(iter(parquet_files(folder)))
        made.rename(folder / f"joined-{span.first}-{span.last}.parquet")


def _rows(files: list[Path], schema: pa.Schema) -> Iterator[pa.RecordBatch]:
    import pyarrow.dataset as ds  # brings pandas, for which a run with nothing new has no time

    if files:
        found = ds.dataset([str(file) for file in files], schema=schema, format="parquet")
        yield from found.to_batches(batch_readahead=1, fragment_readahead=1)


def _damaged(what: str) -> PipelineError:
    return PipelineError(f"{what}: run `tidegate-pipeline once --verify` first")


def _finish(
    root: Path, checkpoints: Path, staged: Path, spans: list[Span], committed: State
) -> None:
    """Swap the folders that are not swapped yet, and commit; doing it again changes nothing."""
    for table in IN_BATCHES:
        if not (root / table / f".{staged.name}").exists():
            _swap(staged / table, root / table)
    staging.sync(root)
    state.fold(checkpoints, committed, _join_state(committed, spans))
    (checkpoints / _NOTE).unlink()
    for table in IN_BATCHES:
        (root / table / f".{staged.name}").unlink()
    shutil.rmtree(staged)


def _join_state(committed: State, spans: list[Span]) -> pa.Table:
    """Make one batch of each span's; returns the files with its number."""
    first, last = zip(*spans, strict=True)
    wanted = pa.table({"batch": first, "last": last})

    def joined(table: pa.Table) -> pa.Table:
        column = renumbered(table["batch"], wanted)
        return table.set_column(table.schema.get_field_index("batch"), "batch", column)

    sums = [("last", "max"), *((table, "sum") for table in state.TABLES)]
    batches = joined(committed.batches).group_by("batch").aggregate(sums)
    batches = batches.select(["batch", *("_".join(each) for each in sums)])
    committed.batches = batches.rename_columns(state.BATCHES.names).cast(state.BATCHES)
    return joined(committed.files)


def _check_disk(staged: Path) -> None:
    """Raise PipelineError unless two folders can change places here."""
    one, other = staged / "one", staged / "other"
    one.mkdir()
    other.mkdir()
    (one / "file").touch()
    try:
        os.link(one / "file", other / "file")
        _swap(one, other)
    except OSError as error:
        shutil.rmtree(staged)
        raise PipelineError(
            f"bronze and quarantine stay as they are: the disk of {staged.parent} cannot "
            f"link files or swap folders ({error.strerror})"
        ) from error
    shutil.rmtree(one)
    shutil.rmtree(other)


def _swap(one: Path, other: Path) -> None:
    """Let two folders change places in one step."""
    library = ctypes.CDLL(None, use_errno=True)
    if library.renameat2(_AT_CWD, os.fsencode(one), _AT_CWD, os.fsencode(other), _EXCHANGE):
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number), str(other))
