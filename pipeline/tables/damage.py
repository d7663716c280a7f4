"""Batches whose rows in the tables are not those that were committed."""

from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple
from urllib.parse import unquote

import pyarrow as pa
import pyarrow.compute as pc

from pipeline.errors import PipelineError
from pipeline.tables import delta, on_disk
from pipeline.tables.columns import KEY, SILVER, is_first
from pipeline.tables.joined import span_of
from pipeline.tables.state import TABLES, State, renumbered

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


def doubled(spark: "SparkSession", root: Path) -> Doubled | None:
    """Return what silver has more than once, None if each key stands there once.

    Spark groups the keys, which it puts on the disk where memory is short of them.
    """
    from pyspark.sql import functions as F  # noqa: N812 - Spark's own custom

    from pipeline.tables.spark_files import read_files

    folder = root / "silver"
    found = [folder / unquote(each["path"]) for each in delta.files(folder)]
    keys = read_files(spark, folder, found, SILVER).groupBy(*KEY, "part").count().where("count > 1")
    again = keys.agg(F.count("*").alias("keys"), F.min(F.struct(*KEY)).alias("first")).first()
    if again is None or not again["keys"]:
        return None
    first = "{gateway_id} {epoch}.{stream}.{seq}".format(**again["first"].asDict())
    return Doubled(again["keys"], first)


def damaged(root: Path, state: State, *, verify: bool) -> list[Damaged]:
    """Return the batches whose rows are not there, and those that were never committed.

    Without `verify` the names of the batches are looked at, with it the rows of each.
    """
    wrong = _by_rows(root, state) if verify else _by_names(root, state)
    known = state.numbers()
    return [_damage(root, state, number, known) for number in sorted(wrong)]


def _damage(root: Path, state: State, number: int, known: set[int]) -> Damaged:
    committed = number in known
    files = state.files_of(number) if committed else on_disk.landing_files(root, number)
    rows = any(on_disk.batch_folder(root, table, number).exists() for table in on_disk.IN_BATCHES)
    return Damaged(number, frozenset(files), rows, committed)


def last_of(root: Path, state: State, number: int) -> int:
    """Return the last of the batches that were joined with this one: itself, if none were."""
    known = state.last_of(number)
    if known is not None:
        return known
    folders = (on_disk.batch_folder(root, table, number) for table in on_disk.IN_BATCHES)
    return max((span.last for folder in folders if (span := span_of(folder))), default=number)


def _by_names(root: Path, state: State) -> set[int]:
    wrong: set[int] = set()
    for table in on_disk.IN_BATCHES:
        expected, found = state.numbers_with(table), on_disk.batches(root / table)
        wrong |= expected - found
        if strange := found - expected:
            wrong |= set(_joined(sorted(strange), state)) - expected
    if state.rows("silver") and not delta.has_rows(root / "silver"):
        wrong |= state.numbers_with("silver")
    return wrong


def _by_rows(root: Path, state: State) -> set[int]:
    counted: dict[str, Counter[int]] = {table: Counter() for table in on_disk.IN_BATCHES}
    for table in on_disk.IN_BATCHES:
        numbers = sorted(on_disk.batches(root / table))
        names = dict(zip(numbers, _joined(numbers, state), strict=True))
        for number in numbers:
            rows = on_disk.count_rows(on_disk.batch_folder(root, table, number))
            counted[table][names[number]] += rows
    in_silver = _silver_rows(root, state)
    wrong = {number for table in counted.values() for number in table} - state.numbers()
    for row in state.batches.to_pylist():
        number = row["batch"]
        found = {table: counted[table][number] for table in on_disk.IN_BATCHES}
        if found | {"silver": in_silver[number]} != {name: row[name] for name in TABLES}:
            wrong.add(number)
    return wrong


def _joined(numbers: list[int], state: State) -> list[int]:
    """Return numbers of batches, those of joined ones as the first of them."""
    found: list[int] = renumbered(
        pa.chunked_array([pa.array(numbers, pa.int64())]), state.batches
    ).to_pylist()
    return found


def _silver_rows(root: Path, state: State) -> Counter[int]:
    try:
        return silver_rows(root, state)
    except (OSError, pa.ArrowInvalid) as error:
        raise PipelineError(f"{root / 'silver'} cannot be read: {error}") from error


def silver_rows(root: Path, state: State) -> Counter[int]:
    """Return silver's messages by batch, those of joined batches under the first."""
    rows: Counter[int] = Counter()
    for part in delta.scan(root / "silver", ["batch", "part"]):
        batches = part["batch"]
        if "part" in part.schema.names:
            batches = batches.filter(is_first(part["part"]))
        names = renumbered(pa.chunked_array([batches]), state.batches)
        for each in pc.value_counts(names).to_pylist():
            rows[each["values"]] += each["counts"]
    return rows
