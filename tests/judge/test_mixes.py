"""Random mixes of all that clients may do, judged by a naive broker after every step.

A seed makes a program; one that fails is printed, made as small as a few seconds allow.
`TIDEGATE_JUDGE=2000` tries so many seeds of each kind.
"""

import os

import pytest

from tests.judge.maker import Maker
from tests.judge.shrink import show, shrink

SEEDS = int(os.environ.get("TIDEGATE_JUDGE", "100"))
GROUP = 10
"""Seeds of one test."""


@pytest.mark.parametrize("first", range(0, SEEDS, GROUP))
@pytest.mark.parametrize("crashes", [False, True])
def test_everybody_sees_what_the_naive_broker_says(first: int, *, crashes: bool) -> None:
    """Windows stay within their bytes; each message is one hit or miss of its topic's route.

    With crashes, too, what was acknowledged stays.
    """
    for seed in range(first, first + GROUP):
        program = Maker(seed, crashes=crashes).make()
        try:
            program.run()
        except Exception as error:
            smaller = show(shrink(program, seconds=10.0))
            error.add_note(f"seed {seed}; what fails in the same way:\n{smaller}")
            raise
