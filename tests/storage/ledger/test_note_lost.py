"""What damage took from the outbox ends as lost, as far as nothing else is known of it."""

from pathlib import Path

import pytest

from gateway.salvage.gaps import LostNumbers
from gateway.storage.ledger.ledger import CAUSE, note_lost
from tests.support.disk.ledger import open_ledger_store

OLD = "00a1b2c3d4"


async def _noted(
    tmp_path: Path, numbers: list[LostNumbers]
) -> tuple[int, list[tuple[int, int, str, str]]]:
    """Note numbers as lost where 5 to 6 and 9 were filtered, of 12; return what is on disk then."""
    kept = await open_ledger_store(tmp_path / "data", OLD)
    kept.last["main"] = 4
    kept.filter(2)
    kept.last["main"] = 8
    kept.filter(1)
    kept.starts.present.last["main"] = 12
    await kept.close()
    again = await open_ledger_store(tmp_path / "data", "ffffffffff")
    count = await note_lost(again.store.database, again.ledger, numbers)
    await again.settle()
    said = await again.on_disk()
    await again.close()
    return count, [(row[0], row[1], row[2], row[3]) for row in said if row[2] == "lost"]


@pytest.mark.parametrize(
    ("first", "last", "expected"),
    [
        (1, 4, [(1, 4)]),
        (5, 6, []),
        (4, 10, [(4, 4), (7, 8), (10, 10)]),
        (6, 9, [(7, 8)]),
        (10, None, [(10, 12)]),
        (13, None, []),
    ],
)
async def test_known_ends_go_first(
    tmp_path: Path, first: int, last: int | None, expected: list[tuple[int, int]]
) -> None:
    count, said = await _noted(tmp_path, [LostNumbers(OLD, "main", first, last)])
    assert said == [(*each, "lost", CAUSE) for each in expected]
    assert count == sum(last - first + 1 for first, last in expected)


async def test_a_range_without_an_end_is_passed_over(tmp_path: Path) -> None:
    numbers = [LostNumbers("9f0e1d2c3b", "main", 3, None), LostNumbers(OLD, "slow", 3, None)]
    assert await _noted(tmp_path, numbers) == (0, [])
