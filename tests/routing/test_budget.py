"""Evaluations are counted, some are measured, and what takes too long is told of, not too often."""

import gc

import pytest

from gateway.routing import budget as budget_module
from gateway.routing.budget import (
    SAMPLED,
    SLOW_NANOSECONDS,
    WARNING_NANOSECONDS,
    Budget,
)
from gateway.routing.over_budget import SHOWN_CODE_POINTS, shown
from gateway.routing.where.compile import Where, compile_where
from gateway.routing.where.evaluation.message import Message
from gateway.routing.where.figures import Figures

HOT = Message("t", b'{"t":30}')
COLD = Message("t", b'{"t":20}')
BROKEN = Message("t", b"{")


class Timer:
    """Lets each measured evaluation take what the test says."""

    def __init__(self) -> None:
        self.now = 0
        self.takes: list[int] = []
        self._begun = False

    def __call__(self) -> int:
        if self._begun:
            self.now += self.takes.pop(0)
        self._begun = not self._begun and bool(self.takes)
        return self.now


@pytest.fixture
def timer() -> Timer:
    return Timer()


@pytest.fixture
def budget(timer: Timer) -> Budget:
    return Budget(timer)


def figures_of(figures: Figures) -> tuple[int, int, int, int]:
    return figures.evaluated, figures.passed, figures.filtered, figures.null


def test_each_evaluation_is_counted_for_its_expression_and_for_all() -> None:
    budget = Budget()
    one, other = compile_where("payload.t > 25"), compile_where("TRUE")
    assert [budget.passes(one, each, "c") for each in (HOT, COLD, BROKEN)] == [True, False, False]
    assert budget.passes(other, BROKEN, "c")
    assert figures_of(one.figures) == (3, 1, 2, 1)
    assert figures_of(other.figures) == (1, 1, 0, 0)
    assert (budget.evaluated, budget.passed, budget.filtered, budget.null) == (4, 2, 2, 1)


def test_one_of_so_many_is_measured_beginning_with_the_first(budget: Budget, timer: Timer) -> None:
    where = compile_where("payload.t > 25")
    timer.takes = [700, 300, 500]
    for number in range(2 * SAMPLED):
        budget.passes(where, HOT, "c")
        assert where.figures.samples == 1 + number // SAMPLED
    assert (where.figures.nanoseconds, where.figures.mean) == (1_000, 500.0)
    assert timer.takes == [500]


def test_without_a_timer_nothing_is_measured() -> None:
    where, budget = compile_where("TRUE"), Budget()
    assert budget.passes(where, HOT, "c")
    assert (where.figures.samples, where.figures.mean, budget.slowest) == (0, 0.0, None)


def test_the_slowest_is_the_one_in_use_with_the_highest_mean(budget: Budget, timer: Timer) -> None:
    expressions = [compile_where(f"payload.t > {each}") for each in range(3)]
    for where, took in zip(expressions, (100, 300, 200), strict=True):
        timer.takes = [took]
        budget.look(where, HOT, "c")
    assert budget.slowest is expressions[1]
    timer.takes = [900]
    budget.look(expressions[2], HOT, "c")
    assert budget.slowest is expressions[2]


def test_the_slowest_is_forgotten_with_its_last_subscription(budget: Budget, timer: Timer) -> None:
    slowest, other = compile_where("payload.t > 25"), compile_where("payload.t > 30")
    timer.takes = [100]
    budget.look(slowest, HOT, "c")
    del slowest
    gc.collect()
    assert budget.slowest is None
    timer.takes = [1]
    budget.look(other, HOT, "c")
    assert budget.slowest is other


def slow(budget: Budget, timer: Timer, where: Where, owner: str) -> None:
    timer.takes = [3 * SLOW_NANOSECONDS, 2 * SLOW_NANOSECONDS]
    budget.look(where, HOT, owner)
    assert not timer.takes


def test_what_takes_too_long_is_told_of(
    budget: Budget, timer: Timer, caplog: pytest.LogCaptureFixture
) -> None:
    slow(budget, timer, compile_where("payload.t > 25"), "client 'c'")
    (warning,) = caplog.messages
    assert warning == (
        "client 'c': an evaluation took 2.0 ms, 1.0 ms are allowed"
        " (0 more since last said): payload.t > 25"
    )
    assert budget.slow == 1


def test_but_not_too_often(budget: Budget, timer: Timer, caplog: pytest.LogCaptureFixture) -> None:
    where = compile_where("payload.t > 25")
    for _ in range(3):
        slow(budget, timer, where, "client 'c'")
    assert (len(caplog.messages), budget.slow) == (1, 3)
    timer.now += WARNING_NANOSECONDS
    slow(budget, timer, where, "uplink.rule[0]")
    assert len(caplog.messages) == 2
    assert "uplink.rule[0]: " in caplog.messages[1]
    assert "(2 more since last said)" in caplog.messages[1]


def test_a_delay_that_was_not_the_expressions_is_measured_again(
    budget: Budget, timer: Timer, caplog: pytest.LogCaptureFixture
) -> None:
    where = compile_where("payload.t > 25")
    timer.takes = [50 * SLOW_NANOSECONDS, 400]
    budget.look(where, HOT, "client 'c'")
    assert (where.figures.mean, budget.slow, caplog.messages) == (400.0, 0, [])


def test_a_long_expression_is_cut_and_in_one_line() -> None:
    assert shown("a =\n  1") == "a = 1"
    text = "a" * SHOWN_CODE_POINTS
    assert shown(text) == text
    assert shown(text + "b") == text + "..."


def test_what_is_evaluated_often_is_promoted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(budget_module, "PROMOTED", 2 * SAMPLED)
    monkeypatch.setattr(budget_module, "MAXIMUM_PROMOTED", 2)
    budget = Budget()
    wheres = [compile_where(f"payload.t > {each}") for each in (25, 26, 27)]
    closures = [where.evaluate for where in wheres]
    for number in range(2 * SAMPLED + 1):
        assert all(
            where.evaluate is closure for where, closure in zip(wheres, closures, strict=True)
        )
        for each in wheres:
            budget.now += 1
            assert budget.passes(each, HOT, "c")
        assert budget.promoted == 2 * (number == 2 * SAMPLED)
    changed = [where.evaluate is not old for where, old in zip(wheres, closures, strict=True)]
    assert changed == [True, True, False]
    assert budget.passes(wheres[0], HOT, "c")
    assert not budget.passes(wheres[0], COLD, "c")
    del wheres[0]
    gc.collect()
    assert budget.promoted == 1


def test_what_cannot_be_promoted_is_not_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(budget_module, "PROMOTED", SAMPLED)
    budget, where = Budget(), compile_where(" OR ".join(["payload.t > 25"] * 60))
    for _ in range(SAMPLED + 1):
        assert budget.passes(where, HOT, "c")
    assert budget.promoted == 0
