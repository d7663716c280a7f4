"""Batches whose rows in the tables are not those that were committed."""

from collections import Counter
from pathlib import Path
from typing import NamedTuple

import pyarrow as pa
import pyarrow.compute as pc

from pipeline.errors import PipelineError
from pipeline.tables import delta, on_disk
from pipeline.tables.state import State


class Damaged(NamedTuple):
    """A batch whose rows in the tables are not those that were committed."""

    number: int
    files: frozenset[str]
    """The landing files that it was made from."""
    rows: bool
    """Whether the tables hold any rows of it."""
    committed: bool


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


def _by_names(root: Path, state: State) -> set[int]:
    wrong: set[int] = set()
    for table in on_disk.IN_BATCHES:
        holds = state.batches.filter(pc.field(table) > 0)["batch"].to_pylist()
        wrong |= set(holds) ^ on_disk.batches(root / table)
    if state.rows("silver") and not delta.has_rows(root / "silver"):
        wrong |= set(state.batches.filter(pc.field("silver") > 0)["batch"].to_pylist())
    return wrong


def _by_rows(root: Path, state: State) -> set[int]:
    counted: dict[str, Counter[int]] = {table: Counter() for table in on_disk.IN_BATCHES}
    for table in on_disk.IN_BATCHES:
        for number in on_disk.batches(root / table):
            counted[table][number] = on_disk.count_rows(on_disk.batch_folder(root, table, number))
    in_silver = Counter(_silver_batches(root))
    wrong = {number for table in counted.values() for number in table} - state.numbers()
    for row in state.batches.to_pylist():
        number = row["batch"]
        found = {table: counted[table][number] for table in on_disk.IN_BATCHES}
        if found | {"silver": in_silver[number]} != {
            name: row[name] for name in row if name != "batch"
        }:
            wrong.add(number)
    return wrong


def _silver_batches(root: Path) -> list[int]:
    try:
        column: list[int] = delta.read(root / "silver", ["batch"])["batch"].to_pylist()
    except (OSError, pa.ArrowInvalid) as error:
        raise PipelineError(f"{root / 'silver'} cannot be read: {error}") from error
    return column
