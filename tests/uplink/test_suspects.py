"""Who is suspected of ending connections, and who is given up for it."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.uplink.errors import End
from gateway.uplink.sent import Sent
from gateway.uplink.suspects import (
    BLAMED,
    LATELY_SECONDS,
    MAXIMUM_HELD,
    RETRY_LONGEST,
    SOON_SECONDS,
    STEP,
    Suspect,
    Suspects,
)
from tests.support.disk.storage import outbox_row


def packet(*numbers: int, at: float = 0.0) -> tuple[int, Sent]:
    """Return a packet in flight with messages of these numbers, sent at a time."""
    rows = [outbox_row(number) for number in numbers]
    for row in rows:
        row.id, row.size = row.seq, 100
    sent = Sent(100, rows, status=b"" if rows else b"{}")
    sent.at = at
    return (numbers or (9_999,))[0], sent


def searching(*numbers: int) -> tuple[Suspects, list[tuple[int, Sent]]]:
    """Return a search, and the packets that it is about."""
    suspects = Suspects(3, 100.0)
    inflight = [packet(number) for number in numbers]
    for _ in range(2):
        inflight, given_up = suspects.ended(inflight, End.CLOSED, 0.0)
        assert given_up is None
    assert suspects.searching
    suspects.begin(present=True)
    return suspects, inflight


def test_two_ends_with_different_messages_in_flight_say_nothing() -> None:
    suspects = Suspects(3, 100.0)
    suspects.ended([packet(1), packet(2)], End.CLOSED, 0.0)
    suspects.ended([packet(3), packet()], End.CLOSED, 1.0)
    assert not suspects.active
    suspects.ended([packet(4), packet()], End.CLOSED, 2.0)
    assert suspects.searching  # the status message both times


def test_ends_that_are_no_message_s_fault_say_nothing() -> None:
    suspects = Suspects(3, 100.0)
    for end in End:
        if end in BLAMED or end is End.TOO_FAST:
            continue
        for _ in range(3):
            again, given_up = suspects.ended([packet(1)], end, 0.0)
            assert (len(again), given_up) == (1, None)
    assert not suspects.active


def test_the_window_of_a_search_doubles_while_nothing_ends() -> None:
    suspects, inflight = searching(1, 2)
    assert suspects.window == 1
    for _ in range(2 * STEP):
        suspects.answered(inflight[0][1], 0)
    assert suspects.window == 4


def test_a_late_end_is_held_against_nobody() -> None:
    suspects, inflight = searching(1, 2)
    again, given_up = suspects.ended(inflight[:1], End.CLOSED, SOON_SECONDS + 1)
    assert (len(again), given_up, suspects.held) == (1, None, [])
    suspects.ended(inflight[:1], End.CLOSED, 0.0)
    suspects.begin(present=True)
    [held] = suspects.held
    suspects.try_(held)
    suspects.answered(packet(3)[1], 0)
    suspects.ended([(held.mid, held.sent)], End.CLOSED, SOON_SECONDS + 1)
    assert (held.ends, held.others_passed) == (1, True)
    suspects.begin(present=False)
    assert held.mid == 0


def test_a_batch_is_taken_apart() -> None:
    suspects, _ = searching(1, 2)
    again, given_up = suspects.ended([packet(1, 2, 3)], End.CLOSED, 0.0)
    assert given_up is None
    assert [(mid, [row.seq for row in sent.rows], sent.batched) for mid, sent in again] == [
        (0, [1], True),
        (0, [2], True),
        (0, [3], True),
    ]


def test_no_more_than_so_many_are_overtaken() -> None:
    suspects, _ = searching(1, 2)
    for number in range(1, MAXIMUM_HELD + 2):
        again, _ = suspects.ended([packet(number)], End.CLOSED, 0.0)
        assert bool(again) == (number > MAXIMUM_HELD)
        suspects.begin(present=True)
    assert len(suspects.held) == MAXIMUM_HELD


def ended_alone(suspects: Suspects, suspect: Suspect, end: End, now: float) -> Suspect | None:
    """End a connection on which a suspect was alone in flight."""
    suspects.begin(present=True)
    suspect.sent.at = now
    suspects.try_(suspect)
    _, given_up = suspects.ended([(suspect.mid, suspect.sent)], end, now)
    return given_up


def held(maximum_ends: int = 3) -> tuple[Suspects, Suspect]:
    """Return one that ended a connection."""
    suspects = Suspects(maximum_ends, 100.0)
    suspects.searching = True
    suspects.ended([packet(1)], End.CLOSED, 0.0)
    suspects.end_search()
    return suspects, suspects.held[0]


def test_one_is_given_up_only_if_others_passed_between_its_ends() -> None:
    suspects, suspect = held()
    for now in range(1, 20):
        assert ended_alone(suspects, suspect, End.CLOSED, now) is None
    suspects.answered(packet(2)[1], 0x80)  # which is no acknowledgement
    assert ended_alone(suspects, suspect, End.CLOSED, 20) is None
    suspects.answered(packet(2)[1], 0)
    assert ended_alone(suspects, suspect, End.CLOSED, 21) is suspect
    assert not suspects.active


def test_when_others_have_passed_it_is_tried_soon() -> None:
    suspects, suspect = held()
    for now in range(1, 20):
        ended_alone(suspects, suspect, End.CLOSED, now)
    suspects.begin(present=True)
    assert suspect.due == 19 + RETRY_LONGEST
    assert suspects.next_trial(22.0, idle=True) is None
    suspects.answered(packet(2)[1], 0)
    assert suspects.next_trial(22.0, idle=False) is suspect


def test_with_0_it_is_never_given_up() -> None:
    suspects, suspect = held(0)
    for now in range(1, 300):
        suspects.answered(packet(2)[1], 0)
        assert ended_alone(suspects, suspect, End.CLOSED, now) is None


def test_too_fast_is_held_against_one_only_after_its_patience() -> None:
    suspects, suspect = held()
    for now in (1, 50, 100, 101):
        suspects.answered(packet(2)[1], 0)
        given_up = ended_alone(suspects, suspect, End.TOO_FAST, now)
        assert (given_up is suspect) == (now > 100)


def test_each_that_passes_after_all_raises_the_bar_until_it_is_quiet() -> None:
    suspects, suspect = held()
    for number in range(10, 12):
        suspects.searching = True
        suspects.ended([packet(number)], End.CLOSED, 0.0)
        suspects.begin(present=True)
        other = suspects.held[-1]
        suspects.try_(other)
        suspects.answered(other.sent, 0)
    for now in range(1, 4):
        suspects.answered(packet(2)[1], 0)
        assert ended_alone(suspects, suspect, End.CLOSED, now) is None
    suspects.answered(packet(2)[1], 0)
    assert ended_alone(suspects, suspect, End.CLOSED, 4) is suspect
    suspects, suspect = held()
    suspects.ended([packet(5), packet(6)], End.CLOSED, LATELY_SECONDS + 1)
    assert not suspects.searching


def test_what_has_left_meanwhile_is_forgotten() -> None:
    suspects, suspect = held()
    suspects.begin(present=True)
    assert suspects.next_trial(0.0, idle=False) is suspect
    suspects.clear(suspect)
    assert suspects.next_trial(0.0, idle=True) is None
    suspects, suspect = held()
    suspects.clear(suspect)
    assert not suspects.active


@pytest.mark.uncovered
@given(st.lists(st.tuples(st.sampled_from(BLAMED), st.integers(1, 5)), max_size=60))
def test_a_fleet_that_takes_nothing_has_nothing_given_up(ends: list[tuple[End, int]]) -> None:
    suspects = Suspects(1, 0.0)
    waiting = [packet(number) for number in range(1, 6)]
    for now, (end, inflight) in enumerate(ends):
        suspects.begin(present=now % 2 == 0)
        trial = suspects.next_trial(float(now), idle=not waiting)
        count = 1 if suspects.searching else inflight
        sent = waiting[:count]
        if trial is not None:
            suspects.try_(trial)
            sent = [(trial.mid, trial.sent)]
        for _, each in sent:
            each.at = float(now)
        again, given_up = suspects.ended(sent, end, float(now))
        assert given_up is None
        if trial is None:
            waiting = [*again, *waiting[count:]]
    rows = {row.seq for _, sent in waiting for row in sent.rows}
    assert rows | suspects.rows == {1, 2, 3, 4, 5}
