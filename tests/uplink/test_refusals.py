"""Messages that were refused for now: when they are tried again, and for how long."""

import pytest

import gateway.uplink.refusals as module
from gateway.mqtt.reason_codes import ReasonCode
from gateway.uplink.refusals import RETRY_LONGEST, Refusals

BUSY = ReasonCode.QUOTA_EXCEEDED


def test_the_waits_grow_and_end() -> None:
    refusals = Refusals(3_600.0)
    now, waits = 0.0, []
    while (due := refusals.add(7, BUSY, now)) is not None:
        waits.append(due - now)
        assert not refusals.is_due(due - 0.001)
        assert refusals.is_due(due)
        assert refusals.next() == 7
        now = due
    assert waits[:9] == [1, 2, 4, 8, 16, 32, 64, 128, 256]
    assert set(waits[9:-1]) == {RETRY_LONGEST}
    assert now == 3_600.0
    assert not refusals.by_id


def test_without_patience_nothing_is_tried_again() -> None:
    assert Refusals(0.0).add(1, BUSY, 5.0) is None


def test_a_second_refusal_keeps_a_message_out_of_batches() -> None:
    refusals = Refusals(60.0)
    refusals.add(1, BUSY, 0.0)
    assert (refusals.is_first(1), refusals.is_separate(1)) == (True, False)
    refusals.add(1, BUSY, 1.0)
    assert (refusals.is_first(1), refusals.is_separate(1)) == (False, True)
    assert (refusals.is_first(2), refusals.is_separate(2)) == (False, False)
    refusals.discard(1)
    refusals.discard(1)
    assert not refusals.by_id


def test_a_new_connection_may_take_what_was_too_large_for_the_last() -> None:
    refusals = Refusals(600.0)
    refusals.add(1, ReasonCode.PACKET_TOO_LARGE, 100.0)
    refusals.add(2, BUSY, 100.0)
    refusals.add(3, BUSY, 100.0)
    refusals.begin(others={3})
    assert refusals.is_due(100.0)
    assert refusals.next() == 1
    assert not refusals.is_due(100.5)
    assert refusals.next_due == 101.0
    assert refusals.next() == 2
    refusals.postpone(2, 103.0)
    assert refusals.next_due == 103.0
    assert 3 in refusals.by_id


def test_beyond_a_bound_nothing_else_is_sent(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MAXIMUM_REFUSED", 2)
    refusals = Refusals(60.0)
    refusals.add(1, BUSY, 0.0)
    assert not refusals.full
    refusals.add(2, BUSY, 0.0)
    assert refusals.full
