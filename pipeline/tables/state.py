"""What was committed: a snapshot, and one file for each batch since, `<number>.json`.

A batch counts from the moment its file is there. Snapshots keep a run with nothing to do quick:
it reads one of them, at most SNAPSHOT_EVERY commits, and no table.
"""

import json
import os
import shutil
from bisect import bisect_left, bisect_right
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import NamedTuple

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from pipeline.errors import PipelineError
from pipeline.place import sync
from pipeline.tables import islands
from pipeline.tables.arrays import strings
from pipeline.tables.staging import put_in_place, stage
from pipeline.tables.task_files import GROUP_ROWS

VERSION = 2
SNAPSHOT_EVERY = 64
"""Commits after which a run folds them into a snapshot."""

TABLES = ("bronze", "quarantine", "silver")
BATCHES = pa.schema([(name, pa.int64()) for name in ("batch", *TABLES)])
FILES = pa.schema(
    [("name", pa.string()), ("size", pa.int64()), ("mtime", pa.int64()), ("batch", pa.int64())]
)
QUARANTINED = pa.schema(
    [
        ("batch", pa.int64()),
        *((name, pa.string()) for name in ("gateway_id", "day", "reason")),
        ("count", pa.int64()),
    ]
)
"""How many rows of the quarantine a batch gave of a gateway, a day and a reason."""

_SETTLED = "settled.json"


class Mark(NamedTuple):
    """By what a landing file is known again: its bytes and its modification time in ns."""

    size: int
    mtime: int


@dataclass(frozen=True)
class Commit:
    """What a batch read and what it gave."""

    batch: int
    files: dict[str, Mark]
    """Landing files by their path below the landing folder."""
    rows: dict[str, int]
    """Rows by table."""
    reasons: dict[str, int]
    """Rows of the quarantine by reason."""
    islands: tuple[islands.Island, ...]
    """The numbers that silver got."""
    dates: tuple[str, ...]
    """Dates of silver's new rows, `` for those without one, and of the quarantine's."""
    streams: tuple[tuple[str, str, str], ...] = ()
    """Streams of which the ledger has something new."""
    epochs: tuple[tuple[str, str], ...] = ()
    """Gateways and epochs of which clock records came."""
    quarantined: tuple[tuple[str | None, str | None, str, int], ...] = ()
    """Rows of the quarantine by gateway, day and reason, as far as they are known."""


class Stored:
    """A table of a snapshot, read when it is needed; with None a table without rows.

    Its file is open, so it can still be read when a later snapshot has taken its place.
    """

    def __init__(self, schema: pa.Schema, file: Path | None = None) -> None:
        self._schema = schema
        self._source = None if file is None else pq.ParquetFile(file)

    def all(self) -> pa.Table:
        """Return all rows."""
        if self._source is None:
            return _no_rows(self._schema)
        return self._source.read(use_threads=False)

    def named(self, names: Collection[str]) -> Iterator[pa.Table]:
        """Yield the rows whose `name` is one of these, of few rows at one time."""
        ordered = sorted(names)
        wanted = strings(ordered)  # `pa.array` would bring pandas into memory
        source = self._source
        if source is None:
            return
        for group in range(source.num_row_groups):
            statistics = source.metadata.row_group(group).column(0).statistics
            if statistics is None:  # of no rows
                continue
            if bisect_left(ordered, statistics.min) < bisect_right(ordered, statistics.max):
                rows = source.read_row_group(group, use_threads=False)
                yield rows.filter(pc.is_in(rows["name"], value_set=wanted))


@dataclass
class State:
    """All commits as one. What is long is read when it is asked for."""

    last: int = 0
    """The highest number that a batch ever had."""
    batches: pa.Table = field(default_factory=lambda: _no_rows(BATCHES))
    reasons: Counter[str] = field(default_factory=Counter)
    compared: int = 0
    """The batch up to which times are corrected, and what arrived is compared with ledgers."""
    golden: int = 0
    """The batch up to which the gold tables are made."""
    made: datetime | None = None
    """When they were made: what held then holds in them until that time."""
    mapped: str | None = None
    """By which mappings the last run read payloads: a hash; None if no run has noted it."""
    trimmed: bool = False
    """Whether rows were deleted for their age, so that silver lacks numbers that it had."""
    corrected: tuple[str, ...] = ()
    """Event dates whose times were corrected since."""
    loose: list[Commit] = field(default_factory=list)
    """Commits that no snapshot holds."""
    stored_files: Stored = field(default_factory=lambda: Stored(FILES))
    stored_islands: Stored = field(default_factory=lambda: Stored(islands.SCHEMA))
    stored_quarantined: Stored = field(default_factory=lambda: Stored(QUARANTINED))
    _islands: pa.Table | None = None

    @property
    def files(self) -> pa.Table:
        """Return the landing files that batches read, in the order of their names."""
        rows = [
            {"name": name, "size": mark.size, "mtime": mark.mtime, "batch": commit.batch}
            for commit in self.loose
            for name, mark in commit.files.items()
        ]
        return _append(self.stored_files.all(), rows).sort_by("name")

    @property
    def quarantined(self) -> pa.Table:
        """Return QUARANTINED of the batches that count."""
        rows = [
            dict(zip(QUARANTINED.names, (commit.batch, *counted), strict=True))
            for commit in self.loose
            for counted in commit.quarantined
        ]
        table = _append(self.stored_quarantined.all(), rows)
        if not table.num_rows:
            return table
        known = self.batches.filter(pc.greater(self.batches["quarantine"], 0))
        return table.filter(pc.is_in(table["batch"], value_set=known["batch"]))

    @property
    def islands(self) -> pa.Table:
        """Return the islands of silver's numbers."""
        if self._islands is None:
            self._islands = self.stored_islands.all()
            self._add_islands(self.loose)
        return self._islands

    def rows(self, table: str) -> int:
        """Return the rows of a table."""
        return pc.sum(self.batches[table]).as_py() or 0

    def numbers(self) -> set[int]:
        """Return the batches that count."""
        return set(self.batches["batch"].to_pylist())

    def numbers_with(self, table: str) -> set[int]:
        """Return the batches that gave a table rows."""
        counted = zip(
            self.batches["batch"].to_pylist(), self.batches[table].to_pylist(), strict=True
        )
        return {batch for batch, rows in counted if rows}

    def new(self, files: Mapping[str, Mark]) -> dict[str, Mark]:
        """Return those of the files that no batch read as they are now."""
        read: set[tuple[str, int, int]] = set()
        for rows in self.stored_files.named(files):
            read.update(zip(*(rows[part].to_pylist() for part in FILES.names[:3]), strict=True))
        for commit in self.loose:
            read.update((name, *mark) for name, mark in commit.files.items())
        return {name: mark for name, mark in files.items() if (name, *mark) not in read}

    def marks(self, names: Collection[str]) -> dict[str, Mark]:
        """Return the marks of the landing files of these names, the last of one read again."""
        found = {
            row["name"]: Mark(row["size"], row["mtime"])
            for rows in self.stored_files.named(names)
            for row in rows.to_pylist()
        }
        for commit in self.loose:
            found |= {name: commit.files[name] for name in commit.files.keys() & names}
        return found

    def files_of(self, batch: int) -> set[str]:
        """Return the landing files of a batch."""
        return set(self.files.filter(pc.field("batch") == batch)["name"].to_pylist())

    def add(self, *commits: Commit) -> None:
        """Take commits in."""
        if not commits:  # Arrow would bring pandas into memory to make tables of nothing
            return
        for commit in commits:
            self.last = max(self.last, commit.batch)
            self.reasons.update(commit.reasons)
        rows: list[dict[str, object]]
        rows = [{"batch": each.batch, **each.rows} for each in commits]
        self.batches = _append(self.batches, rows)
        self.loose += commits
        if self._islands is not None:
            self._add_islands(commits)

    def uncount_reasons(self, batches: Collection[int]) -> None:
        """Subtract the quarantine's rows of these batches, before they are deleted."""
        for row in self.quarantined.to_pylist():
            if row["batch"] in batches:
                self.reasons[row["reason"]] -= row["count"]
        self.reasons = +self.reasons

    def _add_islands(self, commits: Iterable[Commit]) -> None:
        found = [island for commit in commits for island in commit.islands]
        if found:
            self._islands = islands.with_new(self.islands, islands.table_of(found))


def load(folder: Path) -> State:
    """Return what was committed; a damaged commit is none, so its batch is done again.

    A run may fold commits into a snapshot meanwhile. Raises PipelineError for the state of a later
    version of this program.
    """
    while True:
        newest = _newest(folder)
        try:
            state = _read_snapshot(folder, newest)
            loose = [commit for path in sorted(folder.glob("*.json")) if (commit := _read(path))]
        except FileNotFoundError:
            if _newest(folder) == newest:
                raise
            continue
        if _newest(folder) == newest:
            break
    known = state.numbers()
    state.add(*(commit for commit in loose if commit.batch not in known))
    return state


def write_commit(folder: Path, commit: Commit) -> None:
    """Put the commit on the disk, whole or not at all."""
    write_note(_path(folder, commit.batch), {"version": VERSION} | vars(commit))


def forget(folder: Path, state: State, batches: Iterable[int], left: pa.Table) -> State:
    """Take batches out; `left` are the islands of what silver still holds."""
    gone = pa.array(sorted(batches), pa.int64())

    def stay(table: pa.Table) -> pa.Table:
        return table.filter(pc.invert(pc.is_in(table["batch"], value_set=gone)))

    state.uncount_reasons(set(gone.to_pylist()))
    state.batches = stay(state.batches)
    state.compared = state.golden = 0  # what is made from silver is made anew as a whole
    for note in ("derived.json", _SETTLED):
        (folder / note).unlink(missing_ok=True)
    for batch in gone.to_pylist():
        _path(folder, batch).unlink(missing_ok=True)
    fold(folder, state, stay(state.files), left)
    return state


def fold(
    folder: Path, state: State, files: pa.Table | None = None, left: pa.Table | None = None
) -> None:
    """Write a snapshot of everything and remove the commits in it.

    `files` and `left` take the place of the state's files and islands.
    """
    staged = stage(folder)
    body = staged / "snapshot"
    body.mkdir()
    known = {
        "batches": state.batches,
        "files": state.files if files is None else files,
        "islands": state.islands if left is None else left,
        "quarantined": state.quarantined,
    }
    for name, table in known.items():
        pq.write_table(
            table, body / f"{name}.parquet", compression="zstd", row_group_size=GROUP_ROWS
        )
    header = {"version": VERSION, "last": state.last, "trimmed": state.trimmed}
    (body / "header.json").write_text(json.dumps(header | {"reasons": dict(state.reasons)}))
    target = folder / f"snapshot-{_newest(folder) + 1:010d}"
    put_in_place(body, target)
    shutil.rmtree(staged)
    for commit in folder.glob("[0-9]*.json"):
        commit.unlink()
    state.loose, state._islands = [], None  # noqa: SLF001 - this module's own
    state.stored_files, state.stored_islands, state.stored_quarantined = _stored(target)
    for older in folder.glob("snapshot-*"):
        if older != target:
            shutil.rmtree(older)


def _stored(snapshot: Path) -> tuple[Stored, Stored, Stored]:
    counted = snapshot / "quarantined.parquet"
    return (
        Stored(FILES, snapshot / "files.parquet"),
        Stored(islands.SCHEMA, snapshot / "islands.parquet"),
        Stored(QUARANTINED, counted if counted.exists() else None),  # none of an earlier version
    )


def note_derived(folder: Path, state: State) -> None:
    """Put on the disk how far the tables are that are made from silver."""
    marks = {"compared": state.compared, "golden": state.golden, "corrected": state.corrected}
    made = {"made": state.made.isoformat()} if state.made is not None else {}
    marks |= {"mapped": state.mapped}
    write_note(folder / "derived.json", {"version": VERSION} | marks | made)


def settled(folder: Path) -> dict[str, int]:
    """Return the landing folders of which all was read, with the time of their last change."""
    try:
        found: dict[str, int] = json.loads((folder / _SETTLED).read_bytes())
    except (FileNotFoundError, ValueError):
        return {}
    return found


def note_settled(folder: Path, folders: Mapping[str, int]) -> None:
    """Put more such landing folders on the disk."""
    known = settled(folder)
    if known != (both := {**known, **folders}):
        write_note(folder / _SETTLED, both)


def _no_rows(schema: pa.Schema) -> pa.Table:
    """Return what `empty_table` does, which would bring pandas into memory."""
    return pa.Table.from_batches([], schema)


def _append(table: pa.Table, rows: list[dict[str, object]]) -> pa.Table:
    return pa.concat_tables([table, pa.Table.from_pylist(rows, schema=table.schema)])


def write_note(path: Path, value: object) -> None:
    """Put a value on the disk as JSON, whole or not at all."""
    temporary = path.with_suffix(".tmp")
    with temporary.open("w", encoding="utf-8") as file:
        file.write(json.dumps(value))  # `dump` takes five times as long
        file.flush()
        os.fsync(file.fileno())
    temporary.replace(path)
    sync(path.parent)


def _path(folder: Path, batch: int) -> Path:
    return folder / f"{batch:010d}.json"


def since(state: State, batch: int) -> list[Commit] | None:
    """Return the commits of later batches, None if not all of them are at hand."""
    commits = [commit for commit in state.loose if commit.batch > batch]
    late = pc.sum(pc.greater(state.batches["batch"], batch)).as_py() or 0
    return commits if late == len(commits) else None


def _newest(folder: Path) -> int:
    return max((int(path.name.rpartition("-")[2]) for path in folder.glob("snapshot-*")), default=0)


def _read_snapshot(folder: Path, newest: int) -> State:
    state = State()
    body = folder / f"snapshot-{newest:010d}"
    if newest:
        header = json.loads((body / "header.json").read_text())
        _check_version(body, header["version"])
        state = State(
            last=header["last"],
            trimmed=header["trimmed"],
            batches=_read_table(body / "batches.parquet").select(BATCHES.names),
            reasons=Counter(header["reasons"]),
        )
        state.stored_files, state.stored_islands, state.stored_quarantined = _stored(body)
    note = folder / "derived.json"
    if note.exists():
        marks = json.loads(note.read_text())
        state.compared, state.golden = marks["compared"], marks["golden"]
        state.corrected = tuple(marks["corrected"])
        state.mapped = marks.get("mapped")
        if "made" in marks:
            state.made = datetime.fromisoformat(marks["made"])
    return state


def _read_table(file: Path) -> pa.Table:
    with pq.ParquetFile(file) as opened:  # `read_table` would bring pandas into memory
        return opened.read(use_threads=False)  # which cost more than small files


def _read(path: Path) -> Commit | None:
    if not path.stem.isdecimal():
        return None
    try:
        stored = json.loads(path.read_bytes())
        _check_version(path, stored.pop("version"))
        found = tuple(islands.Island(*each) for each in stored.pop("islands"))
        for name in ("dates", "streams", "epochs", "quarantined"):
            stored[name] = tuple(
                tuple(e) if isinstance(e, list) else e for e in stored.get(name, ())
            )
        files = {name: Mark(*mark) for name, mark in stored.pop("files").items()}
        commit = Commit(**stored, files=files, islands=found)
    except (ValueError, TypeError, KeyError, AttributeError):
        return None
    return commit if _path(path.parent, commit.batch) == path else None


def _check_version(path: Path, version: int) -> None:
    if version != VERSION:
        raise PipelineError(
            f"{path} has version {version}, this program knows {VERSION}: "
            "move the tables and their checkpoints away, and read the landing folder again"
        )
