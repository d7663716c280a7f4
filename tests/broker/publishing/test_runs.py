"""Messages that came together and share a subscription: each member gets a run of them."""

from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.mqtt.packets import PubAck, Publish, SubscriptionRequest
from gateway.mqtt.reason_codes import ReasonCode
from gateway.routing.router import RUN
from gateway.session.limits import SessionLimits
from gateway.settings.when_full import WhenFull
from tests.support.broker.broker_harness import Harness
from tests.support.broker.memory_client import MemoryClient
from tests.support.broker.payloads import payloads
from tests.support.broker.publishing import batch, codes, published

SHARED = "$share/g/#"


def members(harness: Harness, count: int, qos: int = 1) -> list[MemoryClient]:
    clients = [harness.connect(f"member{number}") for number in range(count)]
    for client in clients:
        client.subscribe(SHARED, qos)
    return clients


def runs(clients: list[MemoryClient]) -> list[int]:
    return [len(published(client)) for client in clients]


@pytest.mark.uncovered
@pytest.mark.parametrize("qos", [0, 1, 2])
@pytest.mark.parametrize(
    ("count", "shares"),
    [
        (1, [1, 0, 0, 0]),
        (4, [1, 1, 1, 1]),
        (10, [3, 3, 3, 1]),
        (4 * RUN, [RUN] * 4),
        (4 * RUN + 1, [RUN + 1, RUN, RUN, RUN]),
    ],
)
def test_what_came_together_is_dealt_in_equal_runs(
    harness: Harness, qos: int, count: int, shares: list[int]
) -> None:
    clients = members(harness, 4, 2)
    harness.connect("publisher").send(*batch(count, qos))
    assert runs(clients) == shares


def test_topics_that_go_the_same_way_share_a_run(harness: Harness) -> None:
    first, second = members(harness, 2)
    publisher = harness.connect("publisher")
    publisher.send(*[Publish(f"a/{n}", b"%d" % n, 1, packet_id=n) for n in range(1, 7)])
    assert payloads(first.take()) == [b"1", b"2", b"3"]
    assert [each.topic for each in published(second)] == ["a/4", "a/5", "a/6"]
    assert [span.count for span in harness.session("member0").inflight.spans()] == [3]
    assert publisher.take() == [PubAck(number) for number in range(1, 7)]


def test_a_narrow_window_is_not_passed_over(harness: Harness) -> None:
    narrow = harness.connect("narrow", receive_maximum=1)
    narrow.subscribe(SHARED, 1)
    (wide,) = members(harness, 1)
    harness.connect("publisher").send(*batch(6, 1))
    assert payloads(narrow.take()) == [b"1"]
    assert payloads(wide.take()) == [b"2", b"3", b"4", b"5", b"6"]


def test_a_full_window_does_not_cut_the_runs_of_others(harness: Harness) -> None:
    narrow = harness.connect("narrow", receive_maximum=1)
    narrow.subscribe(SHARED, 1)
    (wide,) = members(harness, 1)
    publisher = harness.connect("publisher")
    publisher.send(*batch(1, 1))
    publisher.send(*batch(6, 1, first=2))
    assert payloads(narrow.take()) == [b"1"]
    assert len(published(wide)) == 6
    assert [span.count for span in harness.session("member0").inflight.spans()] == [3, 3]


def test_each_message_is_looked_at_where_a_member_may_not_want_it(harness: Harness) -> None:
    (plain,) = members(harness, 1)
    picky = harness.connect("picky")
    picky.subscribe_all([SubscriptionRequest(SHARED, 1)], where="payload > 3")
    harness.connect("publisher").send(*batch(6, 1))
    assert payloads(plain.take()) == [b"1", b"2", b"3", b"5"]
    assert payloads(picky.take()) == [b"4", b"6"]
    picky.subscribe(SHARED, 1)  # without a filter
    harness.connect("publisher").send(*batch(6, 1))
    assert runs([plain, picky]) == [3, 3]


def test_what_there_is_room_for_is_not_refused_with_the_run_that_there_is_none_for(
    harness: Harness,
) -> None:
    limits = SessionLimits(maximum_queued_messages=3, when_full=WhenFull.REJECT)
    for name in ("first", "second"):
        client = harness.persistent(name, receive_maximum=4)
        client.subscribe(SHARED, 1)
        session = harness.session(name)
        session.limits = limits
        session.queue.maximum_messages = 3
    publisher = harness.connect("publisher")
    publisher.send(*batch(8, 1))  # which fill both windows
    publisher.send(*batch(8, 1, first=9))
    assert codes(publisher) == [ReasonCode.SUCCESS] * 14 + [ReasonCode.QUOTA_EXCEEDED] * 2


def test_nobody_is_there_any_more(harness: Harness) -> None:
    for client in members(harness, 2):
        client.drop()
    publisher = harness.connect("publisher")
    publisher.send(*batch(5, 1))
    assert publisher.take() == [
        PubAck(number, ReasonCode.NO_MATCHING_SUBSCRIBERS) for number in range(1, 6)
    ]


@pytest.mark.uncovered
@given(
    windows=st.lists(st.sampled_from([1, 2, 5, 65_535]), min_size=1, max_size=5),
    bursts=st.lists(st.integers(1, 40), min_size=1, max_size=5),
    qos=st.integers(0, 2),
)
def test_each_message_goes_to_one_member_in_its_order(
    windows: list[int], bursts: list[int], qos: int
) -> None:
    harness = Harness()
    clients = []
    for number, window in enumerate(windows):
        client = harness.connect(f"member{number}", receive_maximum=window)
        client.subscribe(SHARED, 1)
        clients.append(client)
    publisher = harness.connect("publisher")
    sent = 0
    for count in bursts:
        publisher.send(*batch(count, qos, first=sent + 1))
        sent += count
    got: Counter[bytes] = Counter()
    for client in clients:
        mine: list[bytes] = []
        while packets := published(client):
            mine += [each.payload for each in packets]
            client.send(*(PubAck(each.packet_id) for each in packets if each.qos))
        assert mine == sorted(mine, key=int)
        got.update(mine)
    assert got == Counter(b"%d" % number for number in range(1, sent + 1))
