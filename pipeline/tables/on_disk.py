"""The tables, all of them Delta, and what their files say of batches."""

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Sequence

import pyarrow as pa
import pyarrow.compute as pc

from pipeline.errors import PipelineError
from pipeline.place import Place, place_of
from pipeline.tables import delta, islands, silver_numbers
from pipeline.tables.columns import (
    BATCH,
    BATCHES,
    BOARDS,
    BRONZE,
    CLOCKS,
    FILES,
    FOLDERS,
    GAPS,
    KEY,
    LEDGER,
    QUARANTINE,
    QUARANTINED,
    SILVER,
    STREAMS,
    Columns,
    arrow_schema,
    is_first,
)
from pipeline.tables.delta import Where
from pipeline.tables.silver_numbers import Epochs
from pipeline.tables.task_files import Written

TABLES: dict[str, Columns] = {
    "bronze": (*BRONZE, BATCH),
    "quarantine": (*QUARANTINE, BATCH),
    "silver": SILVER,
    "ledger": LEDGER,
    "clocks": CLOCKS,
    "streams": STREAMS,
    "gaps": GAPS,
    "boards": BOARDS,
    "quarantined": QUARANTINED,
    "islands": silver_numbers.COLUMNS,
    "files": FILES,
    "folders": FOLDERS,
    "batches": BATCHES,
}

COUNTED = ("bronze", "quarantine", "silver")
"""Tables whose rows commits count, in the order in which a batch writes to them."""

OF_BATCHES = (*COUNTED, "ledger", "clocks", "quarantined", "islands", "files")
"""Tables that a batch adds rows to; what is in none of them was never begun, or is forgotten."""

FROM_FILES = (*COUNTED, "ledger", "clocks")
"""Tables whose rows name their landing file."""

DAMAGED = -1
"""The rows of a batch that an unreadable file may have; no commit has this number."""


def create(root: Where) -> int:
    """Give each table its columns, so that it can be read before it has a row.

    A column of a later version of this program is added to tables that lack it. Returns the highest
    number of a batch that any of them ever got rows of.
    """
    folder = place_of(root).folder
    for table in COUNTED:
        if folder is not None and any((folder / table).glob("batch=*")):
            raise PipelineError(f"{root / table} is of an earlier version: move {root} away")
    return max(delta.create(root / table, columns) for table, columns in TABLES.items())


def remove_batches(root: Where, batches: Collection[int]) -> None:
    """Take the rows of batches out of all tables."""
    for table in OF_BATCHES:
        delta.remove(root / table, "batch", batches)


def silver_islands(root: Where, epochs: Epochs | None = None) -> pa.Table:
    """Return the islands of silver's rows, by the rows themselves, of these epochs if not None."""
    files = delta.files(root / "silver")
    if epochs is not None:
        known = silver_numbers.of_epochs(root, epochs)
        files = [each for each in files if delta.may_hold(each, known)]
    found = islands.SCHEMA.empty_table()
    for each in files:
        for part in delta.parts(root / "silver", each, [*KEY, "event_time"]):
            rows = pa.Table.from_batches([part])
            if epochs is not None:
                rows = rows.filter(silver_numbers.are_of(rows, epochs))
            more = islands.islands_of(with_ms(rows))
            found = islands.merged(pa.concat_tables([found, more]))
    return found


def with_ms(rows: pa.Table) -> pa.Table:
    """Return the rows with `event_ms` in place of `event_time`."""
    ms = rows["event_time"].cast(pa.timestamp("ms", tz="UTC"), safe=False).cast(pa.int64())
    return rows.drop_columns(["event_time"]).append_column("event_ms", ms)


def rows_by_batch(table: Where, count: str | None = None) -> Counter[int]:
    """Return the rows of a table by batch, a message once; DAMAGED where a file is unreadable.

    `count` is a column that says how many rows each one stands for.
    """
    rows: Counter[int] = Counter()
    unreadable: set[int] = set()
    for each in delta.files(table):
        try:
            for part in delta.parts(table, each, ["batch", count or "part"]):
                for batch, number in _by_batch(part, count).items():
                    rows[batch] += number
        except (OSError, pa.ArrowInvalid):
            unreadable.update(range(each["min.batch"], each["max.batch"] + 1))
    rows.update(dict.fromkeys(unreadable, 0))
    return Counter({batch: DAMAGED if batch in unreadable else rows[batch] for batch in rows})


def _by_batch(part: pa.RecordBatch, count: str | None) -> dict[int, int]:
    if count is not None:
        summed = pa.Table.from_batches([part]).group_by("batch").aggregate([(count, "sum")])
        found = zip(summed["batch"].to_pylist(), summed[f"{count}_sum"].to_pylist(), strict=True)
        return dict(found)
    batches = part["batch"]
    if "part" in part.schema.names:
        batches = batches.filter(is_first(part["part"]))
    return {each["values"]: each["counts"] for each in pc.value_counts(batches).to_pylist()}


def landing_files(root: Where, batches: Collection[int]) -> dict[int, set[str]]:
    """Return the landing files that rows of batches came from, as far as they are readable.

    A batch without such rows in any table is not among them.
    """
    found: dict[int, set[str]] = {}
    wanted = pa.array(sorted(batches), pa.int64())
    for table in FROM_FILES:
        for each in delta.within(delta.files(root / table), "batch", batches):
            try:
                parts = list(delta.parts(root / table, each, ["batch", "landing_file"]))
            except (OSError, pa.ArrowInvalid):
                continue
            for part in parts:
                rows = part.filter(pc.is_in(part["batch"], value_set=wanted))
                pairs = pa.Table.from_batches([rows]).group_by(["batch", "landing_file"])
                for row in pairs.aggregate([]).to_pylist():
                    found.setdefault(row["batch"], set()).add(row["landing_file"])
    return {batch: names - {None} for batch, names in found.items()}


def read_columns(
    root: Place, files: Iterable[Written], columns: Columns, wanted: Sequence[str]
) -> pa.Table:
    """Return some columns of new files."""
    none = pa.Table.from_batches([], _schema(columns, wanted))
    return pa.concat_tables([none, *parts_of(root, files, columns, wanted)])


def parts_of(
    root: Place, files: Iterable[Written], columns: Columns, wanted: Sequence[str]
) -> Iterator[pa.Table]:
    """Yield some columns of new files, at most delta.SCANNED rows at once."""
    schema = _schema(columns, wanted)
    for each in files:
        for part in delta.parts(root / each.folder, {"path": each.name}, schema.names):
            yield delta.typed(pa.Table.from_batches([part]), schema)


def _schema(columns: Columns, wanted: Sequence[str]) -> pa.Schema:
    return arrow_schema(tuple(column for column in columns if column[0] in wanted))
