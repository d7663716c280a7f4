"""Random mixes of all that clients may do, judged by a naive broker after every step.

A seed makes a program; one that fails is printed, made as small as a few seconds allow.
`TIDEGATE_JUDGE=2000` tries so many seeds of each kind.
"""

import os

import pytest

from tests.judge.judge import Judge
from tests.judge.maker import Maker
from tests.judge.programs import Program
from tests.judge.shrink import show, shrink

SEEDS = int(os.environ.get("TIDEGATE_JUDGE", "100"))
GROUP = 10
"""Seeds of one test."""


def run(seed: int, *, crashes: bool) -> None:
    program = Maker(seed, crashes=crashes).make()
    try:
        program.run()
    except Exception as error:
        error.add_note(f"seed {seed}; what fails in the same way:\n{show(_smaller(program))}")
        raise


def _smaller(program: Program) -> Program:
    return shrink(program, seconds=10.0)


@pytest.mark.uncovered
@pytest.mark.parametrize("first", range(0, SEEDS, GROUP))
def test_everybody_sees_what_the_naive_broker_says(first: int) -> None:
    for seed in range(first, first + GROUP):
        run(seed, crashes=False)


@pytest.mark.uncovered
@pytest.mark.parametrize("first", range(0, SEEDS, GROUP))
def test_what_was_acknowledged_survives_crashes(first: int) -> None:
    for seed in range(first, first + GROUP):
        run(seed, crashes=True)


@pytest.mark.uncovered
def test_windows_are_bounded_in_bytes_in_all_mixes() -> None:
    exceeded = [text for seed in range(60) for text in _judged(seed).exceeded]
    assert not exceeded, exceeded[:10]


@pytest.mark.uncovered
def test_each_message_is_one_hit_or_miss_in_all_mixes() -> None:
    wrong = {}
    for seed in range(60):
        judge = _judged(seed)
        routes = judge.driver.broker.admissions
        asked = routes.hits + routes.misses
        if not judge.routed <= asked <= judge.routed + judge.unrouted:
            wrong[seed] = asked, judge.routed, judge.unrouted
    assert not wrong, wrong


def _judged(seed: int) -> Judge:
    return Maker(seed, crashes=False).make().run()
