"""What a full queue of a session that stays gives up, where the configuration lets it."""

import pytest

from gateway.mqtt.packets import PubAck, SubscriptionRequest
from gateway.mqtt.reason_codes import ReasonCode
from gateway.settings.broker import BrokerSettings
from gateway.settings.when_full import WhenFull
from tests.support.broker.durable_broker import DurableHarness, away
from tests.support.broker.payloads import payloads


@pytest.mark.uncovered
@pytest.mark.parametrize(
    ("policy", "codes", "left", "counter"),
    [
        ("reject", [0, 0, 0x97, 0x97], [b"0", b"1"], "tidegate/queues/rejected"),
        ("drop-oldest", [0, 0, 0, 0], [b"2", b"3"], "tidegate/queues/dropped_oldest"),
        ("drop-newest", [0, 0, 0, 0], [b"0", b"1"], "tidegate/queues/dropped_newest"),
    ],
)
@pytest.mark.parametrize("crash", [False, True])
def test_a_queue_that_is_full_by_itself(
    policy: str, codes: list[int], left: list[bytes], counter: str, crash: bool
) -> None:
    harness = DurableHarness(
        BrokerSettings(maximum_queued_messages=2, queue_when_full=WhenFull(policy))
    )
    away(harness)
    assert [harness.publish("t", b"%d" % each, 1) for each in range(4)] == codes
    assert harness.counters.count(counter) == 2
    assert harness.counters.count("publish/messages/dropped") == 2
    assert harness.disk.count("delivery") == 2
    if crash:
        harness.crash()
    assert payloads(harness.persistent().take()) == left


def test_what_is_not_kept_needs_no_room() -> None:
    harness = DurableHarness(
        BrokerSettings(maximum_queued_messages=2, queue_when_full=WhenFull.REJECT)
    )
    client = harness.persistent()
    client.subscribe_all([SubscriptionRequest("t", 1)], where="payload < 9")
    client.subscribe("$share/group/t", 0)
    client.drop()
    assert [harness.publish("t", b"%d" % each, 1) for each in range(3)] == [0, 0, 0x97]
    assert payloads(harness.persistent().take()) == [b"0", b"1"]


def test_a_large_message_takes_the_place_of_many() -> None:
    harness = DurableHarness(
        BrokerSettings(maximum_queued_bytes=3_000, queue_when_full=WhenFull.DROP_OLDEST)
    )
    away(harness)
    for _ in range(3):
        harness.publish("t", b"x" * 1_000, 1)
    harness.publish("t", b"y" * 10_000, 1)
    harness.publish("t", b"z", 1)
    assert payloads(harness.persistent().take()) == [b"z"]


def test_room_that_others_take_is_not_made_by_giving_up_everything() -> None:
    harness = DurableHarness(
        BrokerSettings(maximum_queued_bytes_total=8_000, queue_when_full=WhenFull.DROP_OLDEST)
    )
    away(harness, "hog", "hog")
    away(harness)
    for number in range(3):
        harness.publish("t", b"%d" % number, 1)
    harness.publish("hog", b"x" * 20_000, 1)
    assert harness.publish("t", b"3", 1) is ReasonCode.SUCCESS
    assert payloads(harness.persistent().take()) == [b"1", b"2"]
    for which in ("oldest", "newest"):
        assert harness.counters.count(f"tidegate/queues/dropped_{which}") == 1


def test_a_queue_that_has_nothing_to_give_up_drops_the_newest() -> None:
    harness = DurableHarness(
        BrokerSettings(maximum_queued_bytes_total=8_000, queue_when_full=WhenFull.DROP_OLDEST)
    )
    away(harness, "hog", "hog")
    away(harness)
    harness.publish("hog", b"x" * 20_000, 1)
    assert harness.publish("t", b"0", 1) is ReasonCode.SUCCESS
    assert harness.counters.count("tidegate/queues/dropped_newest") == 1
    assert payloads(harness.persistent().take()) == []


@pytest.mark.parametrize("qos", [0, 1])
def test_a_session_that_ends_with_its_connection_drops_the_newest(qos: int) -> None:
    harness = DurableHarness(
        BrokerSettings(maximum_queued_messages=1, queue_when_full=WhenFull.DROP_OLDEST)
    )
    client = harness.connect("c")
    client.subscribe("t", qos)
    client.reads = False
    big = b"x" * 2 * 1024 * 1024
    for payload in (big, b"kept", b"dropped"):
        harness.publish("t", payload, qos)
    assert harness.counters.count("tidegate/queues/rejected") == 1
    client.reads = True
    harness.settle()
    received = payloads(client.take())
    if qos:  # the first fills the window by itself
        client.send(PubAck(1))
        received += payloads(client.take())
    assert received == [big, b"kept"]
