"""Runs for clients that are away."""

from collections.abc import Callable

import pytest

from gateway.broker.settings import BrokerSettings
from gateway.mqtt.packets import PubAck, Publish
from gateway.mqtt.reason_codes import ReasonCode
from gateway.session.queue_bounds import LARGEST_OF_RUN
from tests.support.broker_harness import Harness
from tests.support.durable_broker import DurableHarness
from tests.support.numbered_runs import published, publishes
from tests.support.queues import messages
from tests.support.run_rows import away


@pytest.mark.parametrize("make", [Harness, DurableHarness])
def test_a_run_waits_for_who_is_away(make: Callable[[], Harness], taken: list[int]) -> None:
    harness = make()
    away(harness)
    harness.connect("publisher").send(*publishes(30, 1))
    assert taken == [30]
    assert len(harness.session("away").queue) == 30
    client = harness.persistent("away")
    assert published(client) == publishes(30, 1)
    client.send(*(PubAck(number) for number in range(1, 31)))
    assert not len(harness.session("away").inflight)
    assert harness.broker.queue_memory.bytes == harness.broker.queue_memory.disk_bytes == 0


def test_one_that_two_have_begun_with_is_counted_no_longer_than_that(taken: list[int]) -> None:
    harness = DurableHarness()
    names = ["one", "two"]
    for name in names:
        away(harness, name)
    harness.connect("publisher").send(*publishes(10, 1))
    assert taken == [10]
    for name in names:
        harness.persistent(name).drop()  # which gives each message a row of its own
    memory = harness.broker.queue_memory
    assert (memory.deliveries, memory.messages) == (20, 20)
    for name in names:
        client = harness.persistent(name)
        assert len(published(client)) == 10
        client.send(*(PubAck(number) for number in range(1, 11)))
    assert (memory.deliveries, memory.messages, memory.bytes, memory.disk_bytes) == (0, 0, 0, 0)


def test_it_is_acknowledged_when_it_is_on_disk(taken: list[int]) -> None:
    harness = DurableHarness()
    away(harness)
    here = harness.persistent("here")
    here.subscribe("a/b", 1)
    publisher = harness.connect("publisher")
    harness.commits = False
    publisher.send(*publishes(3, 1))
    assert taken == [3]
    here.send(*(PubAck(number) for number in range(1, 4)))  # which helps nobody who is away
    assert publisher.take() == []
    harness.commit()
    assert publisher.take() == [PubAck(number) for number in range(1, 4)]
    harness.crash()
    waiting = messages(harness.session("away").queue)
    assert [each.payload for each in waiting] == [b"1", b"2", b"3"]


def test_what_is_kept_in_memory_alone_waits_for_no_disk(taken: list[int]) -> None:
    harness = DurableHarness(BrokerSettings(default_durability=None))
    away(harness)
    harness.commits = False
    publisher = harness.connect("publisher")
    publisher.send(*publishes(3, 1))
    assert taken == [3]
    assert len(publisher.take()) == 3


@pytest.mark.parametrize(
    ("settings", "size"),
    [
        (BrokerSettings(maximum_queued_messages=0), 1),
        (BrokerSettings(maximum_queued_bytes=10_000), 1),
        (BrokerSettings(maximum_queued_bytes_total=10_000), 1),
        (BrokerSettings(), LARGEST_OF_RUN),
    ],
)
def test_where_there_may_be_no_room_each_message_is_handled(
    settings: BrokerSettings, size: int, taken: list[int]
) -> None:
    harness = DurableHarness(settings)
    away(harness)
    publisher = harness.connect("publisher")
    publisher.send(*(Publish("a/b", bytes(size), 1, packet_id=number) for number in (1, 2)))
    assert taken == [0, 0]
    assert len(publisher.take()) == 2


def test_a_queue_ends_the_run_where_it_may_be_full(taken: list[int]) -> None:
    harness = DurableHarness(BrokerSettings(maximum_queued_messages=5))
    away(harness)
    publisher = harness.connect("publisher")
    publisher.send(*publishes(7, 1))
    assert taken == [5, 0, 0]
    codes = [each.reason_code for each in publisher.take() if isinstance(each, PubAck)]
    assert codes == [ReasonCode.SUCCESS] * 5 + [ReasonCode.QUOTA_EXCEEDED] * 2


def test_at_qos_0_nothing_waits_for_who_is_away(taken: list[int]) -> None:
    harness = Harness()
    client = harness.persistent("away")
    client.subscribe("a/#", 0)
    client.drop()
    publisher = harness.connect("publisher")
    publisher.send(*publishes(3, 1))
    assert taken == [3]
    assert len(publisher.take()) == 3
    assert not len(harness.session("away").queue)


def test_at_qos_2_each_message_that_waits_is_handled(taken: list[int]) -> None:
    harness = Harness()
    client = harness.persistent("away")
    client.subscribe("a/#", 2)
    client.drop()
    harness.connect("publisher").send(*publishes(3, 2))
    assert taken == [0] * 3
