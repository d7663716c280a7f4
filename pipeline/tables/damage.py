"""Batches whose rows in the tables are not those that were committed."""

from typing import TYPE_CHECKING, NamedTuple

from pipeline.place import Place
from pipeline.tables import delta, on_disk
from pipeline.tables.columns import KEY, SILVER
from pipeline.tables.delta import Where
from pipeline.tables.state import State

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
    looked at, with it the rows of each batch.
    """
    known = state.numbers()
    strange = {*range(1, max(state.last, newest) + 1)} - known
    wrong = _by_rows(root, state) if verify else _by_logs(root, state)
    found = on_disk.landing_files(root, strange | wrong) if strange | wrong else {}
    return [
        Damaged(
            number,
            frozenset(state.files_of(number) if number in known else found.get(number, ())),
            number in found,
            number in known,
        )
        for number in sorted(wrong | (strange & found.keys()))
    ]


def _by_logs(root: Where, state: State) -> set[int]:
    wrong: set[int] = set()
    for table in on_disk.COUNTED:
        if state.rows(table) and not delta.has_rows(root / table):
            wrong |= state.numbers_with(table)
    return wrong


def _by_rows(root: Where, state: State) -> set[int]:
    counted = {table: on_disk.rows_by_batch(root / table) for table in on_disk.COUNTED}
    committed = {row["batch"]: row for row in state.batches.to_pylist()}
    none = dict.fromkeys(on_disk.COUNTED, 0)
    return {
        batch
        for batch in committed.keys() | {number for rows in counted.values() for number in rows}
        if any(rows[batch] != committed.get(batch, none)[table] for table, rows in counted.items())
    }
