from hypothesis import example, given
from hypothesis import strategies as st

from gateway.telemetry.write_budget import AVERAGED_SECONDS, DAY, LEAST_STRETCH, WriteBudget

MB = 1_000_000


def look_for(
    budget: WriteBudget, seconds: int, a_day: int, begin: int = 0, written: int = 0
) -> int:
    """Write evenly at `a_day` bytes a day for so long; return what was written."""
    for second in range(begin, begin + seconds + 1, 10):
        budget.update(second, written + int((second - begin) * a_day / DAY))
    return written + int(seconds * a_day / DAY)


def test_the_rate_is_told_as_bytes_a_day() -> None:
    budget = WriteBudget(None)
    look_for(budget, 60, 86 * MB)
    assert abs(budget.bytes_per_day - 86 * MB) < MB


def test_without_a_budget_commits_wait_as_long_as_they_may() -> None:
    budget = WriteBudget(None)
    look_for(budget, 3600, 10_000 * MB)
    assert budget.stretch == 1.0
    assert not budget.exceeded


def test_with_room_in_the_budget_answers_come_sooner() -> None:
    budget = WriteBudget(200 * MB)
    look_for(budget, 3600, 20 * MB)
    assert budget.stretch == LEAST_STRETCH


def test_above_the_budget_commits_wait_as_long_as_they_may_again() -> None:
    budget = WriteBudget(200 * MB)
    written = look_for(budget, 3600, 20 * MB)
    look_for(budget, 3600, 300 * MB, 3610, written)
    assert budget.stretch == 1.0
    assert budget.exceeded


def test_near_the_budget_nothing_changes() -> None:
    budget = WriteBudget(200 * MB)
    look_for(budget, 3600, 180 * MB)
    assert budget.stretch == 1.0
    assert not budget.exceeded


def test_a_burst_at_the_start_is_not_yet_too_much() -> None:
    budget = WriteBudget(200 * MB)
    look_for(budget, int(AVERAGED_SECONDS) - 10, 900 * MB)
    assert not budget.exceeded


def test_what_is_written_within_a_moment_counts_with_the_next_look() -> None:
    budget = WriteBudget(None)
    budget.update(0.0, 0)
    budget.update(1e-304, MB)
    assert budget.bytes_per_day == 0
    budget.update(100.0, 2 * MB)
    assert budget.bytes_per_day == 20_000 * DAY


@given(st.lists(st.tuples(st.floats(0, 100), st.integers(0, 10**12)), max_size=50))
@example([(0.0, 0), (1e-304, 10**12)])
def test_stretch_stays_in_the_promised_window(looks: list[tuple[float, int]]) -> None:
    budget = WriteBudget(MB)
    now, written = 0.0, 0
    for seconds, more in looks:
        now, written = now + seconds, written + more
        budget.update(now, written)
        assert LEAST_STRETCH <= budget.stretch <= 1.0
        assert budget.bytes_per_day >= 0
