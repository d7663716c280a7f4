"""What was committed: the tables `files` and `batches`, and how far others follow them.

A batch counts from the moment its row is in `batches`. Its files are noted before any of its rows,
and forgotten after them, so rows that do not count are found and taken out by the next run.
"""

import json
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import date, datetime
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from pipeline.tables import delta
from pipeline.tables.arrays import Array, integers, strings
from pipeline.tables.arrays import numbers as integers_of
from pipeline.tables.columns import BATCH, BATCHES, FILES, FOLDERS, arrow_schema, names
from pipeline.tables.delta import Where

TABLES = ("bronze", "quarantine", "silver")
COUNTED = ("files", *TABLES)
"""Tables whose rows of each batch stand in `batches`."""
FILES_MANY = 64
"""Files of a table of the state, after which a run makes few of them."""
CLUSTERED = {
    "files": "name",
    "batches": "batch",
    "quarantined": "date",
    **dict.fromkeys(("ledger", "clocks"), "gateway_id"),
}
"""Tables that each batch adds a few rows to, and the column by which these are found."""
PROGRESS = "tidegate.progress"
"""The property of the table `batches` that says how far other tables follow it."""


class Mark(NamedTuple):
    """By what a landing file is known again: its bytes and its modification time in ns."""

    size: int
    mtime: int


@dataclass(frozen=True)
class Commit:
    """What a batch read and what it gave."""

    batch: int
    files: int
    """How many landing files it read."""
    rows: Mapping[str, int]
    """Rows by table."""
    reasons: Mapping[str, int] = field(default_factory=dict)
    """Rows of the quarantine by reason."""
    dates: tuple[str, ...] = ()
    """Dates of silver's new rows and of the quarantine's."""
    streams: tuple[tuple[str, str, str], ...] = ()
    """Streams of which silver or the ledger has something new."""
    epochs: tuple[tuple[str, str], ...] = ()
    """Gateways and epochs whose clock records came after rows."""


@dataclass
class State:
    """All commits as one. What grows with them is read where it is needed."""

    root: Where
    last: int = 0
    """The highest number of a batch."""
    rows: Counter[str] = field(default_factory=Counter)
    """Rows by table of COUNTED."""
    reasons: Counter[str] = field(default_factory=Counter)
    count: int = 0
    """How many batches there are."""
    missing: Array = field(default_factory=lambda: np.empty(0, np.int64))
    """Numbers up to `last` that no batch has."""
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
    recount: bool = False
    """Whether the table `islands` has to be made of silver's rows again."""
    reread: bool = False
    """Whether a landing file changed and was read again, so that bronze may have rows twice."""
    corrected: tuple[str, ...] = ()
    """Event dates whose times were corrected since gold was made."""

    def new(self, files: Mapping[str, Mark]) -> dict[str, Mark]:
        """Return those of the files that no batch read as they are now."""
        if not self.count:
            return dict(files)
        read: set[tuple[str, int, int]] = set()
        for rows in delta.near(self.root / "files", names(FILES), "name", files):
            known = self.counting(rows)
            read.update(zip(*(known[part].to_pylist() for part in names(FILES)[:3]), strict=True))
        return {name: mark for name, mark in files.items() if (name, *mark) not in read}

    def knows_any(self, files: Collection[str]) -> bool:
        """Say whether a batch read one of the files, whatever it was then."""
        found = delta.near(self.root / "files", names((BATCH,)), "name", files)
        return any(self.counting(rows).num_rows for rows in found)

    def knows(self, batch: int) -> bool:
        """Say whether a batch counts."""
        return 0 < batch <= self.last and batch not in self.missing

    def counting(self, rows: pa.Table) -> pa.Table:
        """Return those rows whose `batch` counts."""
        batches = integers_of(rows["batch"])  # to compare by Arrow would load pandas
        there = (batches <= self.last) & ~np.isin(batches, self.missing)
        return rows if there.all() else rows.take(integers(np.flatnonzero(there)))

    def files_of(self, batches: Collection[int]) -> dict[int, set[str]]:
        """Return the landing files of batches, also of those that do not count."""
        found: dict[int, set[str]] = {}
        for rows in delta.near(self.root / "files", ("name", "batch"), "batch", batches):
            for row in rows.to_pylist():
                found.setdefault(row["batch"], set()).add(row["name"])
        return found

    def numbers_with(self, table: str) -> set[int]:
        """Return the batches that gave a table rows."""
        return {row["batch"] for row in self.since(0, (table,)) if row[table]}

    def since(self, batch: int, columns: Iterable[str]) -> Iterator[dict[str, Any]]:
        """Yield `batch` and some columns of BATCHES of the batches after that one."""
        for part in _after(self.root / "batches", batch, ("batch", *columns)):
            yield from part.to_pylist()

    def files_since(self, batch: int) -> Iterator[pa.Table]:
        """Yield the landing files (FILES) that later batches read, some at one time."""
        for part in _after(self.root / "files", batch, names(FILES)):
            yield self.counting(part)

    def add(self, commit: Commit) -> None:
        """Take a commit in."""
        skipped = np.arange(self.last + 1, commit.batch)
        self.missing = np.setdiff1d(np.append(self.missing, skipped), [commit.batch])
        self.last = max(self.last, commit.batch)
        self.count += 1
        self.rows.update({"files": commit.files, **commit.rows})
        self.reasons.update(commit.reasons)

    def note(self) -> None:
        """Put on the disk how far other tables follow the batches, and what else is known."""
        kept: dict[str, object] = {name: getattr(self, name) for name in _NOTED}
        kept["made"] = None if self.made is None else self.made.isoformat()
        delta.note(self.root / "batches", PROGRESS, json.dumps(kept))

    def forget(self, batches: Collection[int]) -> None:
        """Take batches out of what counts; what was made of them is then made as a whole again."""
        reached = max(self.compared, self.golden)
        if any(batch <= reached or self.knows(batch) for batch in batches):
            self.compared = self.golden = 0
            self.recount = True
            self.note()
            delta.remove_all(self.root / "folders")
        delta.remove(self.root / "batches", "batch", batches)
        self.read()

    def read(self) -> None:
        """Count the batches of the table."""
        self.rows, self.reasons = Counter(), Counter()
        found = [np.empty(0, np.int64)]
        for part in delta.scan(self.root / "batches", ("batch", *COUNTED, "reasons")):
            found.append(integers_of(pa.chunked_array([part["batch"]])))
            for table in COUNTED:
                self.rows[table] += pc.sum(part[table]).as_py() or 0
            reasons = part["reasons"]
            counts = zip(reasons.keys.to_pylist(), reasons.items.to_pylist(), strict=True)
            for reason, count in counts:
                self.reasons[reason] += count
        numbers = np.concatenate(found)
        self.count, self.last = len(numbers), int(numbers.max(initial=0))
        self.missing = np.setdiff1d(np.arange(1, self.last + 1), numbers)


_NOTED = (
    *("compared", "golden", "made", "mapped", "trimmed", "recount", "reread"),
    "corrected",
)


def load(root: Where) -> State:
    """Return what was committed."""
    state = State(root)
    if not delta.exists(root / "batches"):
        return state
    state.read()
    noted = json.loads(delta.noted(root / "batches", PROGRESS) or "{}")
    if noted:
        made = noted["made"] and datetime.fromisoformat(noted["made"])
        vars(state).update(noted, made=made, corrected=tuple(noted["corrected"]))
    return state


def note_files(root: Where, batch: int, files: Mapping[str, Mark]) -> None:
    """Note which files a batch reads, before it gives any rows."""
    listed = sorted(files.items())
    columns = [
        strings([name for name, _ in listed]),
        integers(np.array([mark.size for _, mark in listed], np.int64)),
        integers(np.array([mark.mtime for _, mark in listed], np.int64)),
        integers(np.full(len(listed), batch)),
    ]
    rows = pa.Table.from_arrays(columns, schema=arrow_schema(FILES))
    delta.append_table(root / "files", rows, batch)


def write_commit(root: Where, commit: Commit) -> None:
    """Let a batch count, by one commit of the table `batches`."""
    delta.append(root / "batches", BATCHES, [row_of(commit)], commit.batch)


def row_of(commit: Commit) -> dict[str, object]:
    """Return a row of BATCHES."""
    return {
        "batch": commit.batch,
        "files": commit.files,
        **commit.rows,
        "reasons": dict(commit.reasons),
        "dates": [date.fromisoformat(day) for day in commit.dates],
        "streams": [dict(zip(_STREAM, each, strict=True)) for each in commit.streams],
        "epochs": [dict(zip(_STREAM, each, strict=False)) for each in commit.epochs],
    }


_STREAM = ("gateway_id", "epoch", "stream")


def settled(root: Where) -> dict[str, int]:
    """Return the landing folders of which all was read, with the time of their last change."""
    if not delta.exists(root / "folders"):
        return {}
    found: dict[str, int] = {}
    for part in delta.scan(root / "folders", names(FOLDERS)):
        listed = zip(part["name"].to_pylist(), part["changed"].to_pylist(), strict=True)
        found.update((name, max(changed, found.get(name, 0))) for name, changed in listed)
    return found


def note_settled(root: Where, folders: Mapping[str, int]) -> None:
    """Note more such landing folders."""
    known = settled(root)
    new = {name: changed for name, changed in folders.items() if known.get(name) != changed}
    if not new:
        return
    many = len(delta.files(root / "folders")) >= FILES_MANY
    rows = _folders({**known, **new} if many else new)
    if many:
        delta.overwrite(root / "folders", rows)
    else:
        delta.append_table(root / "folders", rows)


def tidy(root: Where, many: int = FILES_MANY) -> None:
    """Make few files of the state's tables that have many."""
    for table, column in CLUSTERED.items():
        if len(delta.files(root / table)) >= many:
            delta.cluster(root / table, column)


def _folders(folders: Mapping[str, int]) -> pa.Table:
    changed = np.array(list(folders.values()), np.int64)
    return pa.Table.from_arrays(
        [strings(list(folders)), integers(changed)], schema=arrow_schema(FOLDERS)
    )


def _after(table: Where, batch: int, columns: Iterable[str]) -> Iterator[pa.Table]:
    """Yield some columns of a table's rows of later batches, some at one time."""
    for each in delta.files(table):
        if each["max.batch"] <= batch:
            continue
        for part in delta.parts(table, each, list(columns)):
            yield pa.Table.from_batches([part.filter(pc.greater(part["batch"], batch))])
