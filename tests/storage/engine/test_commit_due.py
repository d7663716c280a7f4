import asyncio
import math

import pytest

from gateway.storage.engine.wake_up import CommitDue
from tests.support.table import table

DELAY = 0.005

CASES = [
    ([0.0], 0.0),
    ([0.05], 0.05),
    ([0.05, 0.2], 0.05),
    ([0.2, 0.05], 0.05),
    ([0.003], 0.003),
    ([DELAY, 0.003, 0.05], 0.003),
    ([0.05, 0.003, 0.0], 0.0),
]


@table(("asked", "earliest"), CASES)
async def test_the_earliest_time_that_is_asked_for_holds(
    asked: list[float], earliest: float
) -> None:
    due, before = CommitDue(), asyncio.get_running_loop().time()
    for within in asked:
        due.schedule(within, DELAY, 1.0)
    due.end_turn()
    if earliest:
        assert before + earliest <= due.at < before + earliest + 1.0
        assert not due.passed or asyncio.get_running_loop().time() >= due.at
    else:
        assert due.passed


async def test_nothing_is_due_that_nobody_wants() -> None:
    due = CommitDue()
    due.end_turn()
    assert (due.wanted, due.at, due.passed) == (False, math.inf, False)
    due.schedule(0.0, DELAY, 1.0)
    assert (due.wanted, due.passed) == (True, True)
    due.clear()
    assert (due.wanted, due.passed) == (False, False)


async def test_what_is_within_the_commit_delay_counts_from_the_end_of_the_turn() -> None:
    due = CommitDue()
    due.schedule(DELAY, DELAY, 0.0)
    assert (due.wanted, due.at) == (True, math.inf)
    before = asyncio.get_running_loop().time()
    due.end_turn()
    assert due.at >= before + DELAY


@pytest.mark.parametrize(("stretch", "used"), [(1.0, 0.5), (0.2, 0.1), (0.0, DELAY)])
async def test_a_stretch_uses_a_part_of_a_window(stretch: float, used: float) -> None:
    due, before = CommitDue(), asyncio.get_running_loop().time()
    due.schedule(0.5, DELAY, stretch)
    assert before + used <= due.at < before + used + 0.3
