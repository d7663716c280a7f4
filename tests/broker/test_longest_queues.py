"""Who does not fetch loses: the longest queues make room, publishers and others do not wait."""

from dataclasses import replace

import pytest

from gateway.broker.connecting.connection_info import ConnectionInfo
from gateway.broker.memory_budget import INTERVAL, SHORTENED_AT_ONCE
from gateway.mqtt.packets import MQTT_3_1_1, MQTT_5, PubAck, Publish
from gateway.session.queue.memory import MAXIMUM_NAMED
from gateway.settings.broker import BrokerSettings
from gateway.settings.when_full import WhenFull
from tests.support.broker.broker_harness import REFUSING, Harness
from tests.support.broker.durable_broker import DurableHarness, away
from tests.support.broker.payloads import payloads

TOTAL = 400_000
SMALL = BrokerSettings(maximum_queued_bytes_total=TOTAL)


def of(user: str) -> ConnectionInfo:
    """Return what a listener says of a connection whose certificate names a user."""
    return ConnectionInfo(username=user)


def drop_counts(harness: Harness) -> dict[str, int]:
    names = ("newest", "oldest", "for_others")
    found = {each: harness.counters.count(f"tidegate/queues/dropped_{each}") for each in names}
    return {name: count for name, count in found.items() if count}


@pytest.mark.uncovered
@pytest.mark.parametrize("make", [Harness, DurableHarness])
@pytest.mark.parametrize("policy", ["drop-newest", "drop-oldest"])
@pytest.mark.parametrize("version", [MQTT_3_1_1, MQTT_5])
def test_a_session_on_everything_that_nobody_comes_back_for(
    make: type[Harness], policy: str, version: int
) -> None:
    harness = make(replace(SMALL, queue_when_full=WhenFull(policy)))
    away(harness, "#", "abandoned")
    away(harness, "mine", "bystander")
    live, publisher = harness.connect("live"), harness.connect("p", version)
    live.subscribe("t", 1)
    received = 0
    for number in range(1, 401):
        publisher.send(Publish("t", bytes(2_000), 1, packet_id=number))
        harness.settle()
        assert publisher.take() == [PubAck(number)]
        received += len(live.take())
        live.send(PubAck(number))
    assert received == 400
    assert drop_counts(harness)
    for number in range(20):
        assert harness.publish("mine", b"%d" % number, 1) == 0
    assert payloads(harness.persistent("bystander").take()) == [b"%d" % each for each in range(20)]
    assert set(harness.broker.queue_memory.dropped) == {"abandoned"}


@pytest.mark.uncovered
@pytest.mark.parametrize("make", [Harness, DurableHarness])
@pytest.mark.parametrize("policy", ["drop-newest", "drop-oldest"])
def test_many_that_fill_what_the_first_ones_leave_make_room_again(
    make: type[Harness], policy: str
) -> None:
    harness = make(replace(SMALL, queue_when_full=WhenFull(policy)))
    for number in range(8):
        away(harness, f"t/{number}", f"hoarder-{number}")
        for _ in range(200):
            assert harness.publish(f"t/{number}", bytes(2_000), 1) == 0
        harness.settle()
    away(harness, "mine", "bystander")
    for _ in range(5):
        harness.pass_time(INTERVAL)
        harness.settle()
    memory = harness.broker.queue_memory
    held, maximum = (
        (memory.disk_bytes, memory.maximum_disk_bytes)
        if harness.broker.store.durable
        else (memory.bytes, memory.maximum_bytes)
    )
    assert TOTAL // 3 < held <= 7 * maximum // 8
    for _ in range(20):
        assert harness.publish("mine", bytes(1_000), 1) == 0
    assert len(harness.session("bystander").queue) == 20
    assert "bystander" not in memory.dropped


def test_it_is_the_user_who_holds_most_and_not_the_longest_queue_that_pays() -> None:
    harness = Harness(SMALL)
    harness.broker.session_limits.memory.maximum_bytes = 10 * TOTAL
    for number in range(10):
        greedy = harness.connect(f"greedy-{number}", session_expiry=60, info=of("greedy"))
        greedy.subscribe("t", 1)
        greedy.subscribe(f"t/{number}", 1)
        greedy.drop()
        for _ in range(15):
            harness.publish(f"t/{number}", bytes(2_000), 1)
    modest = harness.connect("modest", session_expiry=60, info=of("modest"))
    modest.subscribe("mine", 1)
    modest.drop()
    for _ in range(25):
        harness.publish("mine", bytes(2_000), 1)
    harness.broker.memory.shorten_queues(TOTAL)
    assert {each.split("-")[0] for each in harness.broker.queue_memory.dropped} == {"greedy"}
    assert len(harness.session("modest").queue) == 25


def test_a_queue_that_refuses_publishers_gives_up_nothing() -> None:
    harness = Harness(replace(REFUSING, maximum_queued_bytes_total=TOTAL))
    away(harness, "t")
    while harness.publish("t", bytes(2_000), 1) == 0:
        pass
    before = len(harness.session().queue)
    harness.broker.memory.shorten_queues(TOTAL // 4)
    assert len(harness.session().queue) == before
    assert not drop_counts(harness)


@pytest.mark.parametrize("policy", ["drop-newest", "drop-oldest"])
@pytest.mark.parametrize("passes", [1, 5])
def test_which_end_is_given_up_on_disk(policy: str, passes: int) -> None:
    harness = DurableHarness(BrokerSettings(queue_when_full=WhenFull(policy)))
    away(harness)
    for number in range(1_600):
        harness.publish("t", b"%d" % number, 1)
        if number % 100 == 0:
            harness.settle()
    harness.settle()
    queue, memory = harness.session().queue, harness.broker.queue_memory
    assert queue.paged == 600
    for _ in range(passes):
        memory.maximum_disk_bytes = memory.disk_bytes
        for _again in range(2):  # the second finds that the first is not over, or nothing to do
            harness.broker.memory.shorten_queues(10 * TOTAL)
        harness.settle()
    left = len(queue)
    assert 1_600 * 0.7**passes <= left <= 1_600 * 0.8**passes
    assert drop_counts(harness) == {"for_others": 1_600 - left}
    assert harness.disk.count("delivery") == left
    harness.crash()
    client = harness.persistent()
    found: list[bytes] = []
    while len(found) < left:
        received = [each for each in client.take() if isinstance(each, Publish)]
        found += payloads(received)
        client.send(*[PubAck(each.packet_id) for each in received])
        harness.settle()
    kept = range(left) if policy == "drop-newest" else range(1_600 - left, 1_600)
    assert found == [b"%d" % each for each in kept]


@pytest.mark.uncovered
def test_a_session_that_ends_meanwhile_has_nothing_left_to_give_up() -> None:
    harness = DurableHarness()
    away(harness)
    for number in range(1_300):
        harness.publish("t", b"%d" % number, 1)
        if number % 100 == 0:
            harness.settle()
    harness.settle()
    memory = harness.broker.queue_memory
    memory.maximum_disk_bytes = memory.disk_bytes
    harness.broker.memory.shorten_queues(TOTAL)
    harness.persistent(clean_start=True)
    harness.settle()
    assert harness.disk.count("delivery") == memory.disk_bytes == 0


def test_what_is_on_disk_too_is_not_given_up_for_want_of_memory() -> None:
    harness = DurableHarness()
    away(harness)
    for _ in range(20):
        harness.publish("t", bytes(2_000), 1)
    harness.settle()
    harness.broker.memory.shorten_queues(10_000)
    assert len(harness.session().queue) == 20
    assert not drop_counts(harness)


def test_so_many_queues_are_shortened_in_one_pass() -> None:
    harness = Harness()
    for number in range(SHORTENED_AT_ONCE + 5):
        away(harness, f"t/{number}", f"c{number}")
        for _ in range(4):
            harness.publish(f"t/{number}", bytes(2_000), 1)
    harness.broker.memory.shorten_queues(1)
    assert len(harness.broker.queue_memory.dropped) == SHORTENED_AT_ONCE


def test_the_names_of_those_that_lose_are_bounded() -> None:
    memory = Harness().broker.queue_memory
    for number in range(MAXIMUM_NAMED + 1):
        memory.note_dropped(str(number), 1)
    memory.note_dropped("0", 1)
    assert len(memory.dropped) == MAXIMUM_NAMED
    assert memory.dropped["0"] == 2
