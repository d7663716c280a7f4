"""Every change of state meets everything that remembers: by itself, and in random programs.

Nobody is sent what may not be read at that moment, and what was acknowledged arrives or is told.
`TIDEGATE_JUDGE=2000` tries so many seeds.
"""

import os
from itertools import product

import pytest

from tests.judge.far_end_changes import CANNOT_APPLY, FAR_CHANGES, FAR_HOLDERS
from tests.judge.pairs import CHANGES, HOLDERS, pair
from tests.judge.pairs_maker import PairsMaker
from tests.judge.shrink import show, shrink

SEEDS = int(os.environ.get("TIDEGATE_JUDGE", "60"))
GROUP = 10
"""Seeds of one test."""


def test_each_pair_is_tried_or_has_a_reason() -> None:
    """Print the reasons; `pytest -s` shows them."""
    tried = {*product(CHANGES, HOLDERS), *product(FAR_CHANGES, FAR_HOLDERS)}
    every = {*product({*CHANGES, *FAR_CHANGES}, {*HOLDERS, *FAR_HOLDERS})}
    left = every - tried
    assert {change for change, _ in left} == CANNOT_APPLY.keys()
    for change, holder in sorted(left):
        print(f"{change} x {holder}: {CANNOT_APPLY[change]}")


@pytest.mark.parametrize("change", CHANGES)
def test_a_change_meets_all_that_remembers(change: str) -> None:
    for holder, away in product(HOLDERS, (False, True)):
        try:
            pair(change, holder, away=away).run()
        except Exception as error:
            error.add_note(f"{change} x {holder}, {away=}")
            raise


@pytest.mark.parametrize("first", range(0, SEEDS, GROUP))
def test_changes_meet_what_remembers_at_random(first: int) -> None:
    for seed in range(first, first + GROUP):
        program = PairsMaker(seed).make()
        try:
            program.run()
        except Exception as error:
            smaller = show(shrink(program, seconds=10.0))
            error.add_note(f"seed {seed}; what fails in the same way:\n{smaller}")
            raise
