"""Batches whose rows in the tables are not those that were committed."""

from typing import TYPE_CHECKING, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc

from pipeline.place import Place
from pipeline.tables import delta, on_disk, silver_numbers
from pipeline.tables.columns import KEY, SILVER, names
from pipeline.tables.delta import Where
from pipeline.tables.state import CLUSTERED, COUNTED, State

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


class Damaged(NamedTuple):
    """A batch whose rows in the tables are not those that were committed."""

    number: int
    files: frozenset[str]
    """The landing files that it was made from."""
    rows: bool
    """Whether the tables hold any rows of it."""
    committed: bool


class Doubled(NamedTuple):
    """Keys that silver has more than once."""

    keys: int
    first: str
    """One of them: the gateway, and its number as messages bear it."""


def doubled(spark: "SparkSession", root: Place) -> Doubled | None:
    """Return what silver has more than once, None if each key stands there once.

    Spark groups the keys, which it puts on the disk where memory is short of them.
    """
    from pyspark.sql import functions as F  # noqa: N812 - Spark's own custom

    from pipeline.tables.spark_files import read_files

    columns = tuple((name, kind) for name, kind in SILVER if name in (*KEY, "part"))
    rows = read_files(spark, root / "silver", delta.files(root / "silver"), columns)
    keys = rows.groupBy(*KEY, "part").count().where("count > 1")
    again = keys.agg(F.count("*").alias("keys"), F.min(F.struct(*KEY)).alias("first")).first()
    if again is None or not again["keys"]:
        return None
    first = "{gateway_id} {epoch}.{stream}.{seq}".format(**again["first"].asDict())
    return Doubled(again["keys"], first)


def damaged(root: Where, state: State, newest: int, *, verify: bool) -> list[Damaged]:
    """Return the batches whose rows are not there, and those that were never committed.

    `newest` is the highest number of a batch in the tables' logs. Without `verify` the logs are
    looked at, with it the rows of each batch. Islands that are not silver's are to be recounted.
    """
    strange = {*state.missing.tolist(), *range(state.last + 1, newest + 1)}
    wrong = _by_rows(root, state) if verify else _by_logs(root, state)
    if not state.count and delta.files(root / silver_numbers.TABLE):
        state.recount = True  # those of several batches are nobody's now
    numbers = strange | wrong
    if not numbers:
        return []
    files, found = state.files_of(numbers), on_disk.landing_files(root, numbers)
    return [
        Damaged(
            number,
            frozenset(files.get(number, set()) | found.get(number, set())),
            number in found,
            state.knows(number),
        )
        for number in sorted(wrong | (strange & (files.keys() | found.keys())))
    ]


def drop_unreadable(root: Where) -> None:
    """Take unreadable files out of the state's tables, which are made again from the others."""
    for table in (*CLUSTERED, "folders", silver_numbers.TABLE):
        for each in delta.files(root / table):
            try:
                for _ in delta.parts(root / table, each, names(on_disk.TABLES[table])):
                    pass
            except (OSError, pa.ArrowInvalid):
                delta.commit(root / table, [], [each])


def _by_logs(root: Where, state: State) -> set[int]:
    wrong: set[int] = set()
    lost = {name: state.rows[name] > 0 and not delta.has_batch(root / name) for name in COUNTED}
    lost["quarantine"] |= state.rows["quarantine"] > 0 and not delta.has_batch(root / "quarantined")
    state.recount |= state.rows["silver"] > 0 and not delta.files(root / silver_numbers.TABLE)
    for table, gone in lost.items():
        if gone:
            wrong |= state.numbers_with(table)
    return wrong


def _by_rows(root: Where, state: State) -> set[int]:
    counted = {table: on_disk.rows_by_batch(root / table) for table in on_disk.COUNTED}
    counted["files"] = on_disk.rows_by_batch(root / "files", None)
    reasons = on_disk.rows_by_batch(root / "quarantined", "count")
    committed = {row["batch"]: row for row in state.since(0, COUNTED)}
    none = dict.fromkeys(COUNTED, 0)
    if not state.trimmed:
        has = sum(
            pc.sum(pc.add(pc.subtract(part["last"], part["first"]), 1)).as_py() or 0
            for part in delta.scan(root / silver_numbers.TABLE, ["first", "last"])
        )
        state.recount |= has != state.rows["silver"]
    every = committed.keys() | reasons.keys()
    every |= {number for rows in counted.values() for number in rows}
    return {
        batch
        for batch in every
        if any(rows[batch] != committed.get(batch, none)[table] for table, rows in counted.items())
        or reasons[batch] != committed.get(batch, none)["quarantine"]
    }
