"""What the broker takes up again after a crash: only what was on disk, and all of that."""

import pytest

from gateway.broker.restore import restore
from gateway.mqtt.delivery_policy import read_policy
from gateway.mqtt.message import Message
from gateway.mqtt.packets import (
    Connect,
    Disconnect,
    Packet,
    PubAck,
    PubComp,
    Publish,
    PubRec,
    PubRel,
    SubAck,
    Subscribe,
    SubscriptionRequest,
    UnsubAck,
    Unsubscribe,
    Will,
)
from gateway.mqtt.properties import Properties
from gateway.mqtt.reason_codes import ReasonCode
from gateway.settings.broker import BrokerSettings, SubscriptionFilter
from tests.support.broker.broker_harness import Harness
from tests.support.broker.durable_broker import DurableHarness, away
from tests.support.broker.payloads import payloads


@pytest.fixture
def harness() -> DurableHarness:
    return DurableHarness()


@pytest.mark.parametrize(
    ("packet", "answer"),
    [
        (Connect("new", properties=Properties(session_expiry_interval=60)), "ConnAck"),
        (Connect("new", will=Will("w", b"x")), "ConnAck"),
        (Connect("new"), None),
    ],
)
def test_connack_waits_for_what_it_promises(
    harness: DurableHarness, packet: Connect, answer: str | None
) -> None:
    harness.commits = False
    client = harness.open()
    client.send(packet)
    assert bool(client.take()) is (answer is None)
    harness.commit()
    assert [type(each).__name__ for each in client.take()] == ([answer] if answer else [])


@pytest.mark.uncovered
@pytest.mark.parametrize("persistent", [True, False])
@pytest.mark.parametrize(
    ("packet", "answer"),
    [
        (Subscribe(5, [SubscriptionRequest("t", 1)]), SubAck),
        (Unsubscribe(6, ["given/up"]), UnsubAck),
        (Publish("away", b"", 1, packet_id=7), PubAck),
        (Publish("away", b"", 2, packet_id=8), PubRec),
        (Publish("nobody", b"", 2, packet_id=9), PubRec),
        (PubRel(3), PubComp),
    ],
)
def test_answers_wait_for_what_they_promise(
    harness: DurableHarness, packet: Packet, answer: type[Packet], persistent: bool
) -> None:
    away(harness, "away", name="absent")
    client = harness.persistent("c") if persistent else harness.connect("c")
    client.subscribe("given/up", 1)
    client.send(Publish("nobody", b"", 2, packet_id=3))
    client.take()
    harness.commits = False
    client.send(packet)
    to_be_kept = persistent or (isinstance(packet, Publish) and packet.topic == "away")
    assert bool(client.take()) is not to_be_kept
    harness.commit()
    assert [type(each) for each in client.take()] == ([answer] if to_be_kept else [])


def test_a_message_for_many_is_written_once_and_deleted_with_the_last(
    harness: DurableHarness,
) -> None:
    for name in "abc":
        away(harness, name=name)
    harness.publish("t", b"", 1)
    assert (harness.disk.count("message"), harness.disk.count("delivery")) == (1, 3)
    harness.crash()
    for left, name in [(1, "a"), (1, "b"), (0, "c")]:
        client = harness.persistent(name)
        packet = client.take_only(Publish)
        client.send(PubAck(packet.packet_id))
        assert harness.disk.count("message") == left
    assert harness.disk.count("delivery") == 0


def test_a_session_that_ends_takes_everything_with_it(harness: DurableHarness) -> None:
    away(harness)
    away(harness, name="other")
    harness.publish("t", b"", 1)
    harness.persistent(clean_start=True)
    harness.persistent("other").send(Disconnect(properties=Properties(session_expiry_interval=0)))
    tables = ("subscription", "delivery", "message", "incoming")
    assert {table: harness.disk.count(table) for table in tables} == dict.fromkeys(tables, 0)
    assert harness.disk.count("session") == 1  # the new one


def test_a_session_that_shall_not_stay_any_more_is_forgotten(harness: DurableHarness) -> None:
    away(harness)
    harness.publish("t", b"", 1)
    client = harness.connect("c", clean_start=False)
    assert client.connack.session_present
    assert harness.disk.count("session") == harness.disk.count("message") == 0
    packet = client.take_only(Publish)
    client.send(PubAck(packet.packet_id))
    assert harness.disk.count("delivery") == 0


def test_expired_messages_are_deleted_on_disk(harness: DurableHarness) -> None:
    away(harness)
    harness.publish("t", b"queued", 1, message_expiry=10)
    harness.publish("r", b"retained", 1, retain=True, message_expiry=10)
    harness.publish("r2", b"retained", 1, retain=True, message_expiry=10)
    assert (harness.disk.count("message"), harness.disk.count("retained")) == (1, 2)
    harness.pass_time(30)
    assert (harness.disk.count("message"), harness.disk.count("retained")) == (0, 0)


def test_a_retained_message_that_has_expired_is_not_restored(harness: DurableHarness) -> None:
    harness.publish("r", b"x", 1, retain=True, message_expiry=10)
    harness.reboot(10)
    harness.settle()
    assert len(harness.broker.retained) == 0
    assert harness.disk.count("retained") == 0


def test_retained_messages_beyond_the_bound_are_counted(harness: DurableHarness) -> None:
    for topic in ("r", "s"):
        harness.publish(topic, b"x", 1, retain=True)
    _, kept = harness.disk.restore(harness.now, harness.wall)
    smaller = Harness()
    smaller.broker.retained.maximum_messages = 1
    restore(smaller.broker, kept, smaller.instant)
    assert len(smaller.broker.retained) == 1
    assert smaller.counters.count("tidegate/retained/rejected") == 1


@pytest.mark.parametrize("version", [4, 5])
def test_subscriptions_come_back_as_they_were(harness: DurableHarness, version: int) -> None:
    client = harness.persistent(version=version)
    client.subscribe_all(
        [SubscriptionRequest("where", 1, no_local=True, retain_as_published=True)],
        where="value > 20" if version == 5 else None,
        identifier=9 if version == 5 else None,
    )
    client.subscribe("gone", 1)
    client.send(Unsubscribe(5, ["gone"]))
    ((_, before),) = harness.broker.router.subscriptions()
    harness.crash()
    ((_, after),) = harness.broker.router.subscriptions()
    assert (before.topic_filter, after.subscriber) == ("where", harness.session())
    for name in ("topic_filter", "qos", "no_local", "retain_as_published", "identifier"):
        assert getattr(after, name) == getattr(before, name), name
    assert (after.where and after.where.text) == (before.where and before.where.text)


def test_delivery_policies_come_back_as_they_were(harness: DurableHarness) -> None:
    client = harness.persistent()
    held = Properties(user_properties=(("$deliver", "n=7,ms=50"),))
    client.send(Subscribe(5, [SubscriptionRequest("a", 1)], held))
    client.subscribe("b", 1)
    harness.crash()
    after = {each.topic_filter: each for _, each in harness.broker.router.subscriptions()}
    assert after["a"].delivery is read_policy("n=7,ms=50", None), "sessions share it"
    assert after["b"].delivery is None
    wrong = "CASE topic_filter WHEN 'a' THEN 'n=0' ELSE ' every=0' END"
    harness.disk.connection.execute(f"UPDATE subscription SET deliver = {wrong}")
    harness.crash()
    assert not list(harness.broker.router.subscriptions())
    assert harness.counters.count("tidegate/storage/unreadable") == 2


def test_an_attached_filter_is_looked_up_again() -> None:
    harness = DurableHarness(
        BrokerSettings(subscription_filters=(SubscriptionFilter("c", "t", "value > 1"),))
    )
    harness.persistent().subscribe("t", 1)
    harness.settings = BrokerSettings(
        subscription_filters=(SubscriptionFilter("c", "t", "value > 2"),)
    )
    harness.crash()
    ((_, subscription),) = harness.broker.router.subscriptions()
    where = subscription.where
    assert where is not None
    assert where.text == "value > 2"


@pytest.mark.parametrize(
    "change",
    [
        "UPDATE subscription SET expression = 'value >'",
        "UPDATE subscription SET topic_filter = 'a/#/b'",
        "UPDATE subscription SET qos = 3",
    ],
)
def test_a_subscription_that_makes_no_sense_is_left_out(
    harness: DurableHarness, change: str
) -> None:
    harness.persistent().subscribe_all([SubscriptionRequest("t", 1)], where="value > 20")
    harness.disk.connection.execute(change)
    harness.crash()
    assert harness.session().persistent
    assert len(harness.broker.router) == 0


def test_a_shared_subscription_keeps_its_leftovers_for_other_members(
    harness: DurableHarness,
) -> None:
    away(harness, "$share/g/t", "a", 1)
    harness.publish("t", b"x", 1)
    harness.crash()
    other = harness.persistent("b")
    other.subscribe("$share/g/t", 1)
    harness.persistent("a", clean_start=True)
    assert payloads(other.take()) == [b"x"]
    harness.crash()
    assert payloads(harness.persistent("b").take()) == [b"x"]


@pytest.mark.parametrize("topic", ["t", "r", "x/p2p/c"])
def test_a_full_disk_refuses_what_it_would_have_to_keep(topic: str) -> None:
    harness = DurableHarness(BrokerSettings(p2p=True))
    away(harness)
    harness.persistent("online").subscribe("t", 0)
    harness.disk.full = True
    assert harness.publish(topic, b"x", 1, retain=topic == "r") is ReasonCode.QUOTA_EXCEEDED
    assert harness.counters.count("tidegate/storage/rejected") == 1
    assert harness.publish("other", b"x", 1) is ReasonCode.NO_MATCHING_SUBSCRIBERS
    harness.publish("t", b"x", 0)
    harness.disk.full = False
    assert harness.disk.count("message") == 0


def test_what_is_kept_in_memory_alone_is_not_written(harness: DurableHarness) -> None:
    away(harness)
    harness.publish("r", b"kept", 1, retain=True)
    for topic in ("t", "r"):
        message = Message(topic, b"x", 2, retain=topic == "r", arrived=harness.now)
        message.commit_within = None
        harness.broker.publish(message, harness.instant)
    harness.settle()
    assert (harness.disk.count("message"), harness.disk.count("retained")) == (0, 0)
    client = harness.persistent()
    (packet,) = client.take()
    assert packet == Publish("t", b"x", 2, packet_id=1)
    client.send(PubRec(1))
    assert client.take() == [PubRel(1)]
    client.send(PubComp(1))
    harness.crash()
    assert harness.persistent().take() == []
