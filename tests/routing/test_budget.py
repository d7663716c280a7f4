"""Evaluations are counted, some are measured, and what takes too long is told of, not too often."""

import gc

import pytest

from gateway.mqtt.message import Message
from gateway.routing import budget as budget_module
from gateway.routing.budget import (
    AT_ONCE,
    CLIENT,
    CUT_SHORT,
    EVALUATION,
    NOT_PASSED,
    PARSED,
    PASSED,
    PIECE,
    PIECES,
    QUICK,
    SAMPLED,
    SKIPPED,
    SLOW_NANOSECONDS,
    TURN,
    WARNING_NANOSECONDS,
    Budget,
)
from gateway.routing.over_budget import SHOWN_CODE_POINTS, shown
from gateway.where.compile import Where, compile_where
from gateway.where.figures import Figures

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
        budget.sample(where, HOT, "c")
    assert budget.slowest is expressions[1]
    timer.takes = [900]
    budget.sample(expressions[2], HOT, "c")
    assert budget.slowest is expressions[2]


def test_the_slowest_is_forgotten_with_its_last_subscription(budget: Budget, timer: Timer) -> None:
    slowest, other = compile_where("payload.t > 25"), compile_where("payload.t > 30")
    timer.takes = [100]
    budget.sample(slowest, HOT, "c")
    del slowest
    gc.collect()
    assert budget.slowest is None
    timer.takes = [1]
    budget.sample(other, HOT, "c")
    assert budget.slowest is other


def slow(budget: Budget, timer: Timer, where: Where, owner: str) -> None:
    timer.takes = [3 * SLOW_NANOSECONDS, 2 * SLOW_NANOSECONDS]
    budget.sample(where, HOT, owner)
    assert not timer.takes


def test_what_takes_too_long_is_told_of(
    budget: Budget, timer: Timer, caplog: pytest.LogCaptureFixture
) -> None:
    slow(budget, timer, compile_where("payload.t > 25"), "client 'c'")
    (warning,) = caplog.messages
    assert warning == (
        "client 'c': an evaluation took 2.0 ms, 1.0 ms are allowed"
        " (0 more since the last line): payload.t > 25"
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
    assert "(2 more since the last line)" in caplog.messages[1]


def test_a_delay_that_was_not_the_expressions_is_measured_again(
    budget: Budget, timer: Timer, caplog: pytest.LogCaptureFixture
) -> None:
    where = compile_where("payload.t > 25")
    timer.takes = [50 * SLOW_NANOSECONDS, 400]
    budget.sample(where, HOT, "client 'c'")
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


def test_one_expression_is_promoted_in_a_turn(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(budget_module, "PROMOTED", SAMPLED)
    budget = Budget()
    wheres = [compile_where(f"payload.t > {each}") for each in (25, 26, 27)]
    for _ in range(SAMPLED + 1):
        for where in wheres:
            assert budget.passes(where, HOT, "c")
    assert budget.promoted == 1
    for _ in range(SAMPLED):
        budget.now += 1
        for where in wheres:
            assert budget.passes(where, HOT, "c")
    assert budget.promoted == 2


# --- what may be done for a message, a client, a turn -----------------------------------------


def costs(millions: int) -> Where:
    """Return an expression that costs so much for `long()`, and a little more, and is TRUE."""
    terms = [f"payload LIKE '%_{number}%'" for number in range(millions)]
    return compile_where(f"NOT ({' OR '.join(terms)})")


MILLION = 1_000_000


def long() -> Message:
    return Message("t", ("\u00e9" * 10_000).encode())


CHEAP = compile_where("topic = 't'")


def asking(budget: Budget, pieces: int = PIECES, payload_bytes: int = 0) -> Budget:
    budget.pieces = pieces
    budget.begin(payload_bytes)
    return budget


def test_an_evaluation_costs_no_more_than_it_may(caplog: pytest.LogCaptureFixture) -> None:
    budget, where = asking(Budget(), 0), costs(9)
    assert budget.evaluate(where, long(), "c") == NOT_PASSED
    assert (budget.over.count, where.figures.over_budget, where.figures.null) == (1, 1, 1)
    assert "client 'c'" in caplog.messages[0]
    assert "one evaluation" in caplog.messages[0]
    assert asking(budget, 0).evaluate(costs(4), long(), "c") == PASSED


def test_what_is_not_quick_is_cut_short_if_others_wait() -> None:
    budget, where = Budget(), compile_where("UPPER(payload) != 'x'")
    assert budget.evaluate(where, long(), "c", quick=True) == CUT_SHORT
    assert (budget.evaluated, budget.over.count) == (0, 0)
    assert budget.evaluate(where, long(), "c") == PASSED
    nodes = compile_where(" AND ".join(f"topic != '{each}'" for each in range(QUICK // 600 + 1)))
    assert nodes.steps > QUICK
    assert budget.evaluate(nodes, long(), "c", quick=True) == CUT_SHORT
    assert budget.evaluate(nodes, long(), "c") == PASSED


def test_a_client_has_a_share_of_each_second(caplog: pytest.LogCaptureFixture) -> None:
    budget, where = asking(Budget(), 0), costs(4)
    times = 0
    while budget.evaluate(where, long(), "c") == PASSED:
        times += 1
        asking(budget, 0)
    assert times == CLIENT // (4 * MILLION)
    assert budget.evaluate(CHEAP, long(), "c") == SKIPPED
    assert budget.evaluate(CHEAP, long(), "d") == PASSED
    assert "in a second" in caplog.messages[0]
    budget.now += 1.5
    assert asking(budget, 0).evaluate(where, long(), "c") == PASSED


def test_a_piece_ends_and_the_rest_is_unfinished() -> None:
    budget, where = asking(Budget(), 0), costs(2)
    said = [budget.evaluate(where, long(), f"c{each}") for each in range(5)]
    assert said == [PASSED, PASSED, SKIPPED, SKIPPED, SKIPPED]
    assert PIECE == 4 * MILLION
    assert budget.unfinished
    assert (budget.spent, budget.over.count) == (True, 0)
    budget.unfinished = False
    assert asking(budget, 1).evaluate(where, long(), "c4") == PASSED
    assert not budget.spent


def test_a_large_payload_leaves_a_piece_one_evaluation() -> None:
    budget = asking(Budget(), 0, PIECE // PARSED + 1)
    assert [budget.evaluate(CHEAP, long(), each) for each in "cd"] == [PASSED, SKIPPED]
    assert asking(budget, 1, PIECE // PARSED + 1).evaluate(CHEAP, long(), "c") == PASSED
    assert budget.evaluate(CHEAP, long(), "d") == PASSED


def test_what_cannot_wait_has_a_bound(caplog: pytest.LogCaptureFixture) -> None:
    budget = asking(Budget())
    budget.spend(AT_ONCE)
    assert budget.evaluate(CHEAP, long(), "c") == SKIPPED
    assert (budget.unfinished, budget.over.count) == (False, 1)
    assert "for a message" in caplog.messages[0]
    assert asking(budget).evaluate(CHEAP, long(), "c") == PASSED


def test_messages_that_cannot_wait_share_a_turn() -> None:
    budget, where = Budget(), costs(4)
    said = []
    for _ in range(4):
        asking(budget)
        said.append(budget.evaluate(where, long(), "c"))
        assert budget.evaluate(CHEAP, long(), "c") == PASSED
    assert TURN == 8 * MILLION
    assert said == [PASSED, PASSED, SKIPPED, SKIPPED]
    budget.now += 0.001
    assert asking(budget).evaluate(where, long(), "c") == PASSED


def test_a_retained_message_is_asked_about_whatever_the_client_has_cost() -> None:
    budget, where = Budget(), costs(4)
    passed, work = budget.replayed(where, long(), "c", EVALUATION)
    assert passed
    assert 4 * MILLION < work < 4 * MILLION + 10_000
    assert budget.replayed(where, long(), "c", work - 1) == (False, work - 1)
    assert budget.replayed(costs(9), long(), "c", EVALUATION) == (False, EVALUATION)
    assert budget.replayed(where, long(), "c", 100) == (False, 100)
    assert budget.over.count == 3
    assert budget.replayed(compile_where("FALSE"), long(), "c", EVALUATION)[0] is False


def test_what_is_dear_is_not_evaluated_again_to_be_measured(
    budget: Budget, timer: Timer, caplog: pytest.LogCaptureFixture
) -> None:
    where = costs(4)
    assert budget.passes(where, long(), "c")
    assert timer.takes == []
    assert where.figures.samples == 1
    assert where.figures.nanoseconds > SLOW_NANOSECONDS
    assert (budget.slow, len(caplog.messages)) == (1, 1)
