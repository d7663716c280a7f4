import math

import pytest
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from gateway.broker.deadlines import AT_ONCE, SLACK, Deadlines
from gateway.broker.instant import Instant


def at(seconds: float) -> Instant:
    return Instant(seconds, 0)


def test_actions_run_once_in_the_order_of_their_seconds() -> None:
    deadlines, done = Deadlines(), list[str]()
    deadlines.set("b", 2.0, lambda *_: done.append("b"))
    deadlines.set("a", 1.0, lambda *_: done.append("a"))
    deadlines.set("c", 2.0, lambda *_: done.append("c"))
    assert deadlines.next_due == 1.0
    deadlines.run(at(0.9))
    assert not done
    deadlines.run(at(2.0))
    assert done == ["a", "b", "c"]
    deadlines.run(at(3.0))
    assert done == ["a", "b", "c"]
    assert len(deadlines) == 0
    assert deadlines.next_due is None


def test_of_very_many_actions_the_first_are_run_and_the_rest_is_due() -> None:
    deadlines, done = Deadlines(), list[int]()
    for number in range(2 * AT_ONCE + 1):
        deadlines.set(number, 1.0, lambda key, _: done.append(key))
    for count in (AT_ONCE, 2 * AT_ONCE, 2 * AT_ONCE + 1):
        assert deadlines.next_due == deadlines.earliest == 1.0
        deadlines.run(at(2.0))
        assert done == list(range(count))
    assert deadlines.earliest == math.inf


def test_an_action_learns_the_moment_and_can_set_itself_again() -> None:
    deadlines, seen = Deadlines(), list[float]()

    def again(key: str, instant: Instant) -> None:
        seen.append(instant.monotonic)
        deadlines.set(key, instant.monotonic + 5, again)

    deadlines.set("a", 1.0, again)
    deadlines.run(at(4.0))
    assert seen == [4.0]
    assert deadlines.next_due == 9.0


def test_a_key_has_one_action() -> None:
    deadlines, done = Deadlines(), list[str]()
    deadlines.set("a", 1.0, lambda *_: done.append("early"))
    deadlines.set("a", 2.0, lambda *_: done.append("late"))
    assert (len(deadlines), deadlines.next_due) == (1, 2.0)
    deadlines.run(at(9.0))
    assert done == ["late"]


def test_what_is_given_up_does_not_run() -> None:
    deadlines, done = Deadlines(), list[str]()
    deadlines.set("a", 1.0, lambda *_: done.append("a"))
    deadlines.discard("a")
    deadlines.discard("a")
    assert deadlines.next_due is None
    deadlines.run(at(9.0))
    assert not done


def test_the_action_of_one_key_runs_once_when_it_is_due() -> None:
    deadlines, done = Deadlines(), list[str]()
    deadlines.set("a", 2.0, lambda *_: done.append("a"))
    deadlines.set("b", 1.0, lambda *_: done.append("b"))
    deadlines.run_of("nobody", at(2.0))
    deadlines.run_of("a", at(1.9))
    assert not done
    deadlines.run_of("a", at(2.0))
    deadlines.run_of("a", at(2.0))
    assert done == ["a"]
    deadlines.run(at(9.0))
    assert done == ["a", "b"]


@pytest.mark.uncovered
def test_what_is_given_up_takes_no_room() -> None:
    deadlines = Deadlines()
    for number in range(100_000):
        deadlines.set("a", 1e9 - number, lambda *_: None)
        deadlines.set(number, 1e9, lambda *_: None)
        deadlines.discard(number)
    assert len(deadlines._heap) <= len(deadlines) * 5 // 4 + SLACK


class DeadlinesAgainstDict(RuleBasedStateMachine):
    """The deadlines and a plain dictionary run the same actions."""

    def __init__(self) -> None:
        super().__init__()
        self.deadlines = Deadlines()
        self.expected: dict[int, int] = {}
        self.ran: list[int] = []
        self.now = 0

    @rule(key=st.integers(0, 9), delay=st.integers(0, 5))
    def set(self, key: int, delay: int) -> None:
        self.expected[key] = self.now + delay
        self.deadlines.set(key, self.now + delay, lambda *_: self.ran.append(key))

    @rule(key=st.integers(0, 9))
    def discard(self, key: int) -> None:
        self.expected.pop(key, None)
        self.deadlines.discard(key)

    @rule(seconds=st.integers(0, 3))
    def run_due(self, seconds: int) -> None:
        self.now += seconds
        self.ran.clear()
        self.deadlines.run(at(self.now))
        due = {key: when for key, when in self.expected.items() if when <= self.now}
        assert sorted(self.ran) == sorted(due)
        assert [due[key] for key in self.ran] == sorted(due.values())
        for key in due:
            del self.expected[key]
        assert self.deadlines.earliest == min(self.expected.values(), default=math.inf)

    @invariant()
    def knows_the_next(self) -> None:
        assert self.deadlines.earliest <= min(self.expected.values(), default=math.inf)
        assert self.deadlines.next_due == min(self.expected.values(), default=None)
        assert len(self.deadlines) == len(self.expected)


TestDeadlinesAgainstDict = pytest.mark.uncovered(DeadlinesAgainstDict.TestCase)
