"""Runs that waited, as they are sent."""

import pytest

from gateway.broker.settings import BrokerSettings
from gateway.mqtt.packets import Publish
from tests.support.durable_broker import DurableHarness
from tests.support.run_rows import (
    RUN,
    acknowledge,
    away,
    nothing_is_left,
    numbers,
    payloads,
    publish,
    rows,
)


def test_the_window_is_filled_with_parts_of_runs() -> None:
    harness = DurableHarness(BrokerSettings(maximum_inflight=7))
    away(harness)
    for first in range(0, 5 * RUN, RUN):
        publish(harness, RUN, first)
    assert len(rows(harness.disk)) == 5
    client = harness.persistent("away")
    got: list[tuple[bytes, bool]] = []
    while new := [each for each in client.take() if isinstance(each, Publish)]:
        assert len(new) <= 7
        got += [(each.payload, each.dup) for each in new]
        acknowledge(client, *(each.packet_id for each in new))
        assert harness.session("away").inflight.alone == 0
    assert got == numbers(0, 5 * RUN)
    nothing_is_left(harness)


def test_packet_identifiers_come_round_within_a_run() -> None:
    harness = DurableHarness()
    away(harness)
    publish(harness)
    harness.session("away").inflight._last = 65_525
    client = harness.persistent("away")
    sent = [each.packet_id for each in client.take() if isinstance(each, Publish)]
    assert sent == [*range(65_526, 65_536), *range(1, 11)]
    acknowledge(client, *sent)
    nothing_is_left(harness)


def test_an_identifier_that_is_taken_makes_single_messages() -> None:
    harness = DurableHarness()
    away(harness)
    harness.publish("a/b", b"first", 1)
    publish(harness)
    harness.session("away").inflight._last = 65_535
    client = harness.persistent("away")
    inflight = harness.session("away").inflight
    assert len(payloads(client)) == 1 + RUN
    acknowledge(client, *range(2, 2 + RUN))
    assert inflight.alone == 1
    publish(harness, RUN, RUN)
    client.drop()
    publish(harness, RUN, 2 * RUN)
    client = harness.persistent("away")
    inflight._last = 65_535  # 1 is taken
    harness.session("away").pump(harness.now)
    acknowledge(client, *(each.packet_id for each in client.take() if isinstance(each, Publish)))
    acknowledge(client, *(each.packet_id for each in client.take() if isinstance(each, Publish)))
    nothing_is_left(harness)


def test_single_messages_stand_between_runs_in_the_order_in_which_they_were_sent() -> None:
    harness = DurableHarness()
    away(harness)
    for first in (0, RUN + 1, 2 * RUN + 2):
        publish(harness, RUN, first)
        harness.publish("a/b", b"%d" % (first + RUN), 1)
    inflight = harness.session("away").inflight
    client = harness.persistent("away")
    last = 3 * RUN + 3
    assert payloads(client) == numbers(0, last)
    assert (inflight.in_runs, inflight.alone) == (3 * RUN, 3)
    acknowledge(client, *range(1, RUN + 8))  # into the second run
    assert (inflight.in_runs, inflight.alone) == (2 * RUN - 6, 2)
    acknowledge(client, last, RUN + 9)  # the second makes single messages
    assert (inflight.in_runs, inflight.alone) == (0, 2 * RUN - 6)
    client.drop()
    client = harness.persistent("away")
    left = [n for n in range(RUN + 7, last - 1) if n != RUN + 8]
    assert payloads(client) == [(b"%d" % n, True) for n in left]
    acknowledge(client, *(n + 1 for n in left))
    nothing_is_left(harness)


def test_a_single_message_gets_no_identifier_of_a_run() -> None:
    harness = DurableHarness()
    away(harness)
    publish(harness)
    client = harness.persistent("away")
    inflight = harness.session("away").inflight
    inflight._last = 65_535
    client.take()
    harness.publish("a/b", b"x", 1)
    assert [each.packet_id for each in client.take() if isinstance(each, Publish)] == [RUN + 1]
    assert inflight.alone == RUN + 1
    acknowledge(client, *range(1, RUN + 2))
    nothing_is_left(harness)


@pytest.mark.parametrize("crash", [False, True])
def test_out_of_order_a_row_says_which_are_gone(crash: bool) -> None:
    harness = DurableHarness()
    away(harness)
    publish(harness)
    client = harness.persistent("away")
    acknowledge(client, 1, 3, 4, 7, RUN)
    harness.pass_time(2)
    assert rows(harness.disk) == [(RUN, RUN - 5)]
    left = [n for n in range(RUN) if n + 1 not in (1, 3, 4, 7, RUN)]
    if crash:
        harness.crash()
    else:
        client.drop()  # which writes packet identifiers, each beside its message
        assert [count for _, count in rows(harness.disk)] == [1] * len(left)
        harness.crash()
    client = harness.persistent("away")
    again = [each for each in client.take() if isinstance(each, Publish)]
    assert [(each.payload, each.dup) for each in again] == [(b"%d" % n, True) for n in left]
    if not crash:
        assert [each.packet_id for each in again] == [n + 1 for n in left]
    acknowledge(client, *(each.packet_id for each in again))
    nothing_is_left(harness)


@pytest.mark.parametrize("window", [8, RUN])
def test_who_goes_in_the_middle_of_a_run_gets_the_rest_later(window: int) -> None:
    harness = DurableHarness(BrokerSettings(maximum_inflight=window))
    away(harness)
    publish(harness)
    client = harness.persistent("away")
    acknowledge(client, 1, 2)
    client.take()
    client.drop()
    sent = min(RUN, window + 2)  # two more when two were acknowledged
    held = [(RUN, RUN - sent)] if sent < RUN else []
    assert rows(harness.disk) == [*((n, 1) for n in range(3, sent + 1)), *held]
    harness.crash()
    client = harness.persistent("away")
    got: list[tuple[bytes, bool]] = []
    while new := [each for each in client.take() if isinstance(each, Publish)]:
        got += [(each.payload, each.dup) for each in new]
        acknowledge(client, *(each.packet_id for each in new))
    assert got == numbers(2, sent, dup=True) + numbers(sent, RUN)
    nothing_is_left(harness)


def test_a_crash_while_connected_sends_a_window_again() -> None:
    harness = DurableHarness(BrokerSettings(maximum_inflight=30))
    away(harness)
    for first in range(0, 3 * RUN, RUN):
        publish(harness, RUN, first)
    harness.persistent("away")
    harness.crash()
    client = harness.persistent("away")
    got: list[tuple[bytes, bool]] = []
    while new := [each for each in client.take() if isinstance(each, Publish)]:
        got += [(each.payload, each.dup) for each in new]
        acknowledge(client, *(each.packet_id for each in new))
    assert got == numbers(0, 30, dup=True) + numbers(30, 3 * RUN)
    nothing_is_left(harness)


@pytest.mark.parametrize("run", [False, True])
def test_two_crashes_do_not_take_dup_away(run: bool) -> None:
    harness = DurableHarness(BrokerSettings(maximum_inflight=3))
    away(harness)
    for first in range(0, 8, 8 if run else 1):
        publish(harness, 8 if run else 1, first)
    harness.persistent("away")
    harness.crash()
    harness.crash()
    client = harness.persistent("away")
    assert payloads(client) == numbers(0, 3, dup=True)
