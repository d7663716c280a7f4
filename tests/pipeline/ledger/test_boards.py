"""Two boards under one name, beside what looks like them: restarts, backlogs, backups, clocks."""

from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from pipeline.cli import main
from pipeline.ledger import boards
from pipeline.tables import delta, islands, on_disk, silver_numbers
from pipeline.tables.columns import BOARDS, LEDGER, SILVER
from tests.support.disk.landing_files import TIME

MINUTE = 60_000
A, B = "00000000aa", "00000000bb"

Rows = list[tuple[str, int, int, int]]
"""Epoch, number, event time and receipt in minutes after TIME; later than the former is resent."""


def steady(epoch: str, first: int, last: int, step: int = 2, late: int = 0) -> Rows:
    return [(epoch, n, at, at + late) for n, at in enumerate(range(first, last, step), 1)]


def backlog(epoch: str, first: int, last: int, received: int) -> Rows:
    return [(epoch, n, at, received) for n, at in enumerate(range(first, last, 2), 1)]


def put(root: Path, rows: Rows, starts: dict[str, int], source: str) -> None:
    """Put rows of silver and entries of the ledger in place."""
    delta.create(root / "silver", SILVER)
    on_disk.create(root)
    found: list[dict[str, Any]] = []
    for epoch, seq, at, received in rows:
        event = TIME + at * MINUTE
        found.append(
            {"gateway_id": "barn", "epoch": epoch, "stream": "main", "seq": seq}
            | {"event_time": datetime.fromtimestamp(event / 1000, UTC)}
            | {"time_source": "received" if source == "backlog" else source}
            | {"received": TIME + received * MINUTE, "event_ms": event}
            | {"resent": received > at or source == "backlog"}
        )
    delta.append(root / "silver", SILVER, [_without(row, "event_ms") for row in found])
    reported = [
        {"gateway_id": "barn", "epoch": epoch, "start": start, "stream": "main"}
        | {"landing_file": f"barn/ledger/{epoch}.1.jsonl"}
        for epoch, start in starts.items()
    ]
    delta.append(root / "ledger", LEDGER, reported)
    silver_numbers.add(root, islands.islands_of(pa.Table.from_pylist(found)), 1)


def _without(row: dict[str, Any], name: str) -> dict[str, Any]:
    return {key: value for key, value in row.items() if key != name}


CASES: dict[str, tuple[Rows, dict[str, int], str, list[str]]] = {
    "a card that runs twice": (
        [*steady(A, 0, 60), *steady(B, 1, 61)], {A: 8, B: 8}, "gateway", ["fork"],
    ),
    "the same, and the second board was offline": (
        [*steady(A, 0, 60), *backlog(B, 1, 61, 90)], {A: 8, B: 8}, "gateway", ["fork"],
    ),
    "two boards without a ledger": (
        [*steady(A, 0, 60), *steady(B, 1, 61)], {}, "gateway", ["interleaved"],
    ),
    "a restart": ([*steady(A, 0, 60), *steady(B, 61, 90)], {A: 7, B: 8}, "gateway", []),
    "a restart with a backlog": (
        [*backlog(A, 0, 60, 70), *steady(B, 61, 90)], {A: 7, B: 8}, "gateway", [],
    ),
    "a restored backup": ([*steady(A, 0, 60), *steady(B, 90, 150)], {A: 8, B: 8}, "gateway", []),
    "a clock that was ahead before the restart": (
        [*((A, n, at + 60, at) for n, at in enumerate(range(0, 60, 2), 1)), *steady(B, 61, 121)],
        {A: 7, B: 8}, "gateway", [],
    ),
    "a backlog without a clock, which has the time of its receipt": (
        [*((A, n, at, at) for n, at in enumerate(range(61, 91, 2), 1)), *steady(B, 62, 92)],
        {A: 7, B: 8}, "received", [],
    ),
    "a card without a clock that runs twice": (
        [*steady(A, 0, 60), *steady(B, 1, 61)], {A: 8, B: 8}, "received", ["fork"],
    ),
    "a restored backup, and what the board before had sent without a clock came late": (
        [*steady(A, 0, 60), *steady(B, 1, 61)], {A: 8, B: 8}, "backlog", [],
    ),
    "a restored backup without a clock, and a receipt of the board before that lagged": (
        [*steady(A, 0, 60), (A, 99, 70, 70), *steady(B, 61, 121)], {A: 8, B: 8}, "received", [],
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", CASES)
def test_two_epochs_at_one_time_are_two_boards(
    tmp_path: Path, case: str, capsys: pytest.CaptureFixture[str]
) -> None:
    rows, starts, source, reasons = CASES[case]
    put(tmp_path, rows, starts, source)
    boards.make(tmp_path, {"barn"})
    found = delta.read_all(tmp_path / "boards").to_pylist()
    assert [(row["gateway"], row["reason"]) for row in found] == [("barn", r) for r in reasons]
    assert [row.keys() for row in found] == [dict(BOARDS).keys() for _ in reasons]
    boards.make(tmp_path, {"mill"})
    assert delta.read_all(tmp_path / "boards").to_pylist() == found
    assert main(["ledger", "--tables", str(tmp_path)]) == (3 if reasons else 0)
    said = capsys.readouterr().out
    assert ("two boards: barn ran twice between 2025-11-21 15:47" in said) == bool(reasons)
    assert ("complete: nothing is missing" in said) != bool(reasons)
    delta.remove_all(tmp_path / "islands")
    boards.make(tmp_path, None)
    assert not delta.read_all(tmp_path / "boards").num_rows


def test_an_epoch_that_two_others_follow_is_a_fork(tmp_path: Path) -> None:
    put(tmp_path, [*steady(A, 0, 60), *steady(B, 1, 61, late=90)], {}, "gateway")
    row: Callable[[str], dict[str, Any]] = lambda epoch: {  # noqa: E731 - one line of a table
        "gateway_id": "barn", "epoch": "00000000cc", "stream": "main", "last": 9,
        "landing_file": "20251121/ledger/collected.1-a.jsonl", "reporter": epoch,
    }  # fmt: skip
    by_file = row(B) | {"landing_file": f"barn/ledger/{B}.1.jsonl", "reporter": None}
    delta.append(tmp_path / "ledger", LEDGER, [row(A), by_file])
    (found,) = boards.boards(tmp_path, None)
    assert (found.reason, found.epoch, found.other_epoch) == ("fork", A, B)
    assert found.last_ms - found.first_ms == 57 * MINUTE
