"""Whether the selector stays awake for those who answer soon, on a clock of its own."""

import itertools

import pytest

from gateway.server import socket_selector
from gateway.server.socket_selector import (
    LONGEST_AWAKE,
    LONGEST_PAUSE,
    READ,
    SHORT,
    STEADY,
    WORTHWHILE,
    SocketSelector,
)


class Epoll:
    """An epoll whose sleeps take as long as they are told, and on which the same clock runs."""

    def __init__(self) -> None:
        self.time = 0.0
        self.polls: list[float] = []
        self.ready_in = 0.0

    def monotonic(self) -> float:
        self.time += 1e-6
        return self.time

    def poll(self, seconds: float, events: int) -> list[tuple[int, int]]:
        self.polls.append(seconds)
        if seconds == 0.0 and self.ready_in > 0.0:
            self.time += 1e-6
            self.ready_in -= 2e-6
            return []
        self.time += self.ready_in
        return [(0, READ)]

    def close(self) -> None:
        pass


class Answering:
    """Is served `turns` times, the peer's next answer coming in `ready_in` seconds each."""

    def __init__(self, selector: SocketSelector, epoll: Epoll) -> None:
        self.selector = selector
        self.epoll = epoll
        self.ready_in: list[float] = []

    def ready(self, events: int) -> None:
        self.epoll.ready_in = self.ready_in.pop(0)
        self.selector.scheduled = not self.ready_in

    def waits(self, *ready_in: float) -> list[float]:
        """Return what time-outs the epoll was polled with while the answers came after these."""
        self.epoll.polls.clear()
        self.epoll.ready_in = ready_in[0]
        self.ready_in = [*ready_in[1:], 0.0]
        self.selector.select()
        return self.epoll.polls


@pytest.fixture
def answering(monkeypatch: pytest.MonkeyPatch) -> Answering:
    epoll = Epoll()
    monkeypatch.setattr("select.epoll", lambda: epoll)
    monkeypatch.setattr(socket_selector, "monotonic", epoll.monotonic)
    selector = SocketSelector()
    monkeypatch.setattr(epoll, "register", lambda *_: None, raising=False)
    made = Answering(selector, epoll)
    selector.serve(0, made, READ)
    return made


SOON, LATE, NEVER = WORTHWHILE / 2, LONGEST_AWAKE * 1.1, SHORT * 2


def test_who_answers_soon_each_time_is_waited_for_awake(answering: Answering) -> None:
    assert answering.waits(*[SOON] * STEADY) == [-1.0] * STEADY
    polls = answering.waits(SOON, SOON)
    assert len(polls) > 2
    assert set(polls) == {0.0}


def test_a_wait_awake_ends_with_sleep(answering: Answering) -> None:
    answering.waits(*[SOON] * STEADY)
    polls = answering.waits(LATE)
    assert polls[-1] == -1.0
    assert 1 < len(polls) <= LONGEST_AWAKE / 2e-6 + 2


def test_one_late_answer_does_not_end_it(answering: Answering) -> None:
    answering.waits(*[SOON] * STEADY * 2, LATE)
    assert set(answering.waits(*[SOON] * STEADY)) == {0.0}


def test_an_answer_after_a_long_time_ends_it(answering: Answering) -> None:
    answering.waits(*[SOON] * STEADY, NEVER)
    assert answering.waits(*[SOON] * STEADY) == [-1.0] * STEADY


def test_a_long_wait_among_short_ones_is_slept_for(answering: Answering) -> None:
    conversation = [*[SOON] * (STEADY - 1), NEVER]
    assert answering.waits(*conversation, *conversation, SOON) == [-1.0] * (2 * STEADY + 1)


def awake(polls: list[float]) -> int:
    """Return in how many places of the polls waits begin that are spent awake."""
    return sum(after == 0.0 != before for before, after in itertools.pairwise(polls))


def test_what_is_not_worthwhile_is_seldom_tried_again(answering: Answering) -> None:
    waits = 4 * LONGEST_PAUSE
    polls = answering.waits(*[WORTHWHILE * 3] * waits)
    assert 2 < awake(polls) < 100
    at_last = len(polls) - 1 - polls[::-1].index(0.0)
    before = at_last - polls[:at_last][::-1].index(-1.0)
    assert 0.0 not in polls[before - LONGEST_PAUSE : before]


def test_a_long_wait_does_not_shorten_the_pause(answering: Answering) -> None:
    for _ in range(20):  # each time twice as long
        answering.waits(*[WORTHWHILE * 3] * STEADY)
        answering.waits(NEVER)
    assert set(answering.waits(*[SOON] * STEADY)) == {-1.0}


@pytest.mark.uncovered
def test_pauses_become_short_again_once_it_is_worthwhile(answering: Answering) -> None:
    answering.waits(*[WORTHWHILE * 3] * LONGEST_PAUSE)
    answering.waits(*[SOON] * 4 * LONGEST_PAUSE)
    answering.waits(*[WORTHWHILE * 3] * 2 * STEADY)
    assert 0.0 in answering.waits(*[SOON] * 2 * STEADY)


def test_a_look_without_waiting_says_nothing_of_waits(answering: Answering) -> None:
    answering.waits(*[SOON] * STEADY)
    answering.epoll.ready_in = NEVER
    answering.selector.select(0)
    assert set(answering.waits(SOON)) == {0.0}
