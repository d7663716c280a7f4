"""What the broker takes up again after a crash: only what was on disk, and all of that."""

import pytest

from gateway.broker.restore import WILL_GRACE, restore
from gateway.broker.settings import BrokerSettings
from gateway.broker.subscription_filters import SubscriptionFilter
from gateway.mqtt.packets import (
    MQTT_3_1_1,
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
from gateway.routing.where.message import Message
from tests.support.broker_harness import Harness, MemoryClient
from tests.support.durable_broker import DurableHarness


@pytest.fixture
def harness() -> DurableHarness:
    return DurableHarness()


def payloads(packets: list[Packet]) -> list[bytes]:
    return [packet.payload for packet in packets if isinstance(packet, Publish)]


def away(harness: DurableHarness, topic_filter: str = "t", qos: int = 2, name: str = "c") -> None:
    """Leave a persistent session behind that is subscribed and has no connection."""
    client = harness.persistent(name)
    client.subscribe(topic_filter, qos)
    client.drop()


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


def test_what_was_acknowledged_is_delivered_in_order_after_a_crash(harness: DurableHarness) -> None:
    away(harness)
    for number in range(10):
        assert harness.publish("t", b"%d" % number, number % 3) is ReasonCode.SUCCESS
    harness.crash()
    client = harness.persistent()
    assert client.connack.session_present
    expected = [b"%d" % number for number in range(10) if number % 3]  # QoS 0 is not kept
    assert payloads(client.take()) == expected


def test_what_was_not_committed_is_gone(harness: DurableHarness) -> None:
    away(harness)
    harness.publish("t", b"kept", 1)
    harness.commits = False
    harness.publish("t", b"lost", 1)
    harness.crash()
    harness.commits = True
    assert payloads(harness.persistent().take()) == [b"kept"]


def test_what_everyone_acknowledged_before_the_commit_is_never_written(
    harness: DurableHarness,
) -> None:
    client = harness.persistent()
    client.subscribe("t", 1)
    harness.commits = False
    for _ in range(10):
        harness.publish("t", b"", 1)
        (packet,) = client.take()
        assert isinstance(packet, Publish)
        client.send(PubAck(packet.packet_id))
    assert harness.disk.commit() == 0


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
        (packet,) = client.take()
        assert isinstance(packet, Publish)
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
    (packet,) = client.take()
    assert isinstance(packet, Publish)
    client.send(PubAck(packet.packet_id))
    assert harness.disk.count("delivery") == 0


def test_a_message_goes_on_with_its_expiry(harness: DurableHarness) -> None:
    away(harness)
    harness.publish("t", b"short", 1, message_expiry=10)
    harness.publish("t", b"long", 1, message_expiry=100)
    harness.reboot(50)
    (packet,) = harness.persistent().take()
    assert isinstance(packet, Publish)
    assert packet.payload == b"long"
    assert packet.properties.message_expiry_interval == 50


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


@pytest.mark.parametrize("version", [MQTT_3_1_1, 5])
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
    away(harness, "$share/g/t", 1, "a")
    harness.publish("t", b"x", 1)
    harness.crash()
    other = harness.persistent("b")
    other.subscribe("$share/g/t", 1)
    harness.persistent("a", clean_start=True)
    assert payloads(other.take()) == [b"x"]
    harness.crash()
    assert payloads(harness.persistent("b").take()) == [b"x"]


def test_a_session_expires_by_the_wall_clock_while_the_gateway_is_down(
    harness: DurableHarness,
) -> None:
    away(harness)
    harness.reboot(3599)
    harness.pass_time(0)
    assert "c" in harness.broker.sessions
    harness.pass_time(1)
    assert "c" not in harness.broker.sessions
    assert harness.disk.count("session") == 0


def test_a_session_that_was_connected_expires_from_the_restart_on(harness: DurableHarness) -> None:
    harness.persistent()
    harness.reboot(1_000_000)
    harness.pass_time(3599)
    assert "c" in harness.broker.sessions
    harness.pass_time(1)
    assert "c" not in harness.broker.sessions


def test_a_wall_clock_that_was_set_back_expires_nothing(harness: DurableHarness) -> None:
    away(harness)
    harness.publish("t", b"x", 1, message_expiry=100)
    harness.reboot(-1_000_000_000)
    harness.pass_time(99)
    assert payloads(harness.persistent().take()) == [b"x"]


def test_a_clock_that_finds_the_time_expires_nothing(harness: DurableHarness) -> None:
    away(harness)
    harness.persistent("w", will=DELAYED).drop()
    harness.publish("t", b"x", 1, message_expiry=1_000)
    harness.publish("r", b"x", 1, retain=True, message_expiry=1_000)
    harness.publish("t", b"for ever", 1)
    times = "SELECT received_at FROM message WHERE message_expiry IS NULL"
    before = harness.disk.connection.execute(times).fetchone()
    harness.set_clock(1_000_000_000)
    assert harness.disk.connection.execute(times).fetchone() == before
    harness.reboot(20)  # 40 s in all
    assert harness.disk.count("will") == 1
    assert len(harness.broker.retained) == 1
    packets = [packet for packet in harness.persistent().take() if isinstance(packet, Publish)]
    assert [packet.payload for packet in packets] == [b"x", b"for ever"]
    assert packets[0].properties.message_expiry_interval == 960


@pytest.mark.parametrize("seconds", [-1_000, 0, 0.9])
def test_a_clock_that_is_set_back_or_hardly_at_all_rewrites_nothing(
    harness: DurableHarness, seconds: float
) -> None:
    away(harness)
    left_at = "SELECT left_at FROM session"
    before = harness.disk.connection.execute(left_at).fetchone()
    harness.set_clock(seconds)
    assert harness.disk.connection.execute(left_at).fetchone() == before


def test_a_session_that_was_left_before_the_clock_was_set_begins_anew(
    harness: DurableHarness,
) -> None:
    harness.wall = 20_000
    away(harness)
    harness.reboot(1_763_740_000)
    harness.pass_time(3599)
    assert "c" in harness.broker.sessions
    harness.pass_time(1)
    assert "c" not in harness.broker.sessions


def test_a_session_for_ever_has_no_deadline(harness: DurableHarness) -> None:
    harness.connect("c", MQTT_3_1_1, clean_start=False).subscribe("t", 1)
    harness.reboot(10**9)
    harness.pass_time(10**9)
    assert "c" in harness.broker.sessions


def test_messages_that_may_have_been_sent_come_with_dup(harness: DurableHarness) -> None:
    client = harness.persistent(receive_maximum=2)
    client.subscribe("t", 1)
    for number in range(4):
        harness.publish("t", b"%d" % number, 1)
    assert payloads(client.take()) == [b"0", b"1"]
    harness.settings = BrokerSettings(maximum_inflight=3)
    harness.crash()
    client = harness.persistent()
    packets = [packet for packet in client.take() if isinstance(packet, Publish)]
    assert [(packet.payload, packet.dup) for packet in packets] == [
        (b"0", True),
        (b"1", True),
        (b"2", True),
    ]
    assert [packet.packet_id for packet in packets] == [1, 2, 3]
    client.send(PubAck(1))
    (last,) = client.take()
    assert isinstance(last, Publish)
    assert not last.dup


def test_packet_identifiers_are_kept_when_the_connection_ends(harness: DurableHarness) -> None:
    client = harness.persistent()
    client.subscribe("t", 1)
    for number in range(3):
        harness.publish("t", b"%d" % number, 1)
    client.send(PubAck(1))
    client.drop()
    harness.publish("t", b"3", 1)
    harness.crash()
    packets = [packet for packet in harness.persistent().take() if isinstance(packet, Publish)]
    assert [(packet.payload, packet.packet_id, packet.dup) for packet in packets] == [
        (b"1", 2, True),
        (b"2", 3, True),
        (b"3", 4, False),
    ]


def test_a_qos_2_publish_leaves_after_its_packet_identifier(harness: DurableHarness) -> None:
    client = harness.persistent()
    client.subscribe("t", 2)
    harness.commits = False
    harness.publish("t", b"x", 2)
    harness.publish("t", b"behind", 0)
    assert client.take() == []
    harness.commit()
    assert payloads(client.take()) == [b"x", b"behind"]
    harness.crash()
    harness.commits = True
    (again,) = harness.persistent().take()
    assert isinstance(again, Publish)
    assert (again.packet_id, again.dup) == (1, True)


def test_a_qos_2_publish_that_never_left_is_none_that_may_have(harness: DurableHarness) -> None:
    client = harness.persistent(receive_maximum=1)
    client.subscribe("t", 2)
    for number in range(2):
        harness.publish("t", b"%d" % number, 2)
    harness.publish("t", b"2", 1)
    harness.crash()
    packets = [packet for packet in harness.persistent().take() if isinstance(packet, Publish)]
    assert [packet.dup for packet in packets] == [True, False, False]


def test_a_pubrel_leaves_after_its_release(harness: DurableHarness) -> None:
    client = harness.persistent()
    client.subscribe("t", 2)
    harness.publish("t", b"x", 2)
    client.take()
    harness.commits = False
    client.send(PubRec(1), PubRec(1))
    assert client.take() == []
    harness.commit()
    assert client.take() == [PubRel(1), PubRel(1)]
    harness.commits = True
    harness.crash()
    client = harness.persistent()
    assert client.take() == [PubRel(1)]
    client.send(PubComp(1))
    assert harness.disk.count("delivery") == 0


def test_a_qos_2_message_is_sent_again_only_behind_its_commit(harness: DurableHarness) -> None:
    client = harness.persistent()
    client.subscribe("t", 2)
    harness.commits = False
    harness.publish("t", b"x", 2)
    client.drop()
    client = harness.open()
    client.send(Connect("c", clean_start=False, properties=Properties(session_expiry_interval=60)))
    harness.commit()
    assert payloads(client.take()) == [b"x"]


def test_incoming_packet_identifiers_survive(harness: DurableHarness) -> None:
    client = harness.persistent()
    message = Publish("t", b"x", 2, packet_id=7)
    client.send(message)
    client.send(Publish("t", b"x", 2, packet_id=8))
    client.send(PubRel(8))
    harness.crash()
    away(harness, name="s")
    client = harness.persistent()
    client.send(message)
    assert client.take() == [PubRec(7)]
    assert payloads(harness.persistent("s").take()) == []
    client.send(PubRel(7))
    assert client.take() == [PubComp(7)]
    assert harness.disk.count("incoming") == 0


WILL = Will("w", b"gone", 1, properties=Properties(content_type="a", user_properties=(("k", "v"),)))
DELAYED = Will("w", b"gone", 1, properties=Properties(will_delay_interval=60))


def test_a_will_is_published_once_after_a_restart(harness: DurableHarness) -> None:
    away(harness, "w", name="watcher")
    harness.connect("c", will=WILL, username="u")
    harness.crash()
    harness.pass_time(WILL_GRACE - 0.1)
    assert harness.disk.count("will") == 1
    harness.pass_time(0.1)
    assert harness.disk.count("will") == 0
    harness.crash()
    harness.pass_time(WILL_GRACE)
    (message,) = harness.persistent("watcher").take()
    assert isinstance(message, Publish)
    assert message.properties.content_type == "a"
    assert message.properties.user_properties == (("k", "v"),)
    assert list(harness.broker.sessions) == ["watcher"]


@pytest.mark.parametrize("clean_start", [True, False])
def test_a_will_is_not_published_if_its_client_comes_back(
    harness: DurableHarness, clean_start: bool
) -> None:
    away(harness, "w", name="watcher")
    harness.connect("c", will=WILL)
    harness.crash()
    client = harness.connect("c", clean_start=clean_start)
    assert not client.connack.session_present
    harness.pass_time(60)
    assert payloads(harness.persistent("watcher").take()) == []
    assert harness.disk.count("will") == 0


@pytest.mark.parametrize(
    ("will", "dropped", "down", "due"),
    [
        (WILL, False, 1, WILL_GRACE),
        (DELAYED, False, 1, 60),  # it was connected to the end
        (DELAYED, True, 20, 40),
        (DELAYED, True, 100, WILL_GRACE),
        (DELAYED, True, -10_000, 60),  # the clock was set back
    ],
)
def test_a_will_of_a_session_that_stays_keeps_its_deadline(
    harness: DurableHarness, will: Will, dropped: bool, down: int, due: float
) -> None:
    away(harness, "w", name="watcher")
    client = harness.persistent("c", will=will)
    if dropped:
        client.drop()
    harness.reboot(down)
    harness.pass_time(due - 0.1)
    assert harness.disk.count("will") == 1
    harness.pass_time(0.1)
    assert harness.disk.count("will") == 0
    assert payloads(harness.persistent("watcher").take()) == [b"gone"]


def test_a_normal_disconnect_removes_the_will(harness: DurableHarness) -> None:
    harness.connect("c", will=WILL).send(Disconnect())
    assert harness.disk.count("will") == 0


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


def acknowledge(client: MemoryClient) -> None:
    client.send(*(PubAck(each.packet_id) for each in client.take() if isinstance(each, Publish)))


def test_puback_leaves_when_everyone_has_acknowledged(harness: DurableHarness) -> None:
    receivers = [harness.persistent(name) for name in "ab"]
    for receiver in receivers:
        receiver.subscribe("t", 1)
    publisher = harness.connect("p")
    harness.commits = False
    publisher.send(*(Publish("t", b"x", 1, packet_id=each) for each in (1, 2)))
    assert publisher.take() == []
    acknowledge(receivers[0])
    assert publisher.take() == []
    assert harness.disk.wanted == harness.disk.commit_delay / 2
    acknowledge(receivers[1])
    assert publisher.take() == [PubAck(1), PubAck(2)]
    assert harness.disk.commit() == 0
    assert harness.disk.elided_rows == 2 + 4  # messages, and deliveries


def test_what_waits_behind_a_window_is_spared_too(harness: DurableHarness) -> None:
    receiver = harness.persistent("a", receive_maximum=2)
    receiver.subscribe("t", 1)
    publisher = harness.connect("p")
    harness.commits = False
    publisher.send(*(Publish("t", b"x", 1, packet_id=each) for each in range(1, 5)))
    assert harness.disk.wanted == harness.disk.commit_delay / 2
    acknowledge(receiver)
    acknowledge(receiver)
    assert len(publisher.take()) == 4
    assert harness.disk.commit() == 0


def test_what_waits_for_more_than_a_window_is_written_at_once(harness: DurableHarness) -> None:
    receiver = harness.persistent("a", receive_maximum=2)
    receiver.subscribe("t", 1)
    publisher = harness.connect("p")
    harness.commits = False
    publisher.send(*(Publish("t", b"x", 1, packet_id=each) for each in range(1, 6)))
    assert harness.disk.wanted == 0.0
    harness.commit()
    assert harness.disk.count("delivery") == 5  # also those before it, which were only lent
    harness.commit()  # what was lent waits for two batches all the same
    assert len(publisher.take()) == 5


def test_puback_keeps_its_place_among_others(harness: DurableHarness) -> None:
    away(harness, "away")
    receiver = harness.persistent("a")
    receiver.subscribe("t", 1)
    publisher = harness.connect("p")
    harness.commits = False
    publisher.send(Publish("away", b"x", 1, packet_id=1), Publish("t", b"x", 1, packet_id=2))
    publisher.send(Publish("nobody", b"x", 1, packet_id=3))
    assert harness.disk.wanted == 0.0  # somebody who is away must get it
    acknowledge(receiver)
    assert publisher.take() == []
    harness.commit()
    none = ReasonCode.NO_MATCHING_SUBSCRIBERS
    assert publisher.take() == [PubAck(1), PubAck(2), PubAck(3, none)]


def test_without_a_commit_delay_nothing_is_put_off(harness: DurableHarness) -> None:
    harness.disk.commit_delay = 0.0
    receiver = harness.persistent("a")
    receiver.subscribe("t", 1)
    publisher = harness.connect("p")
    harness.commits = False
    publisher.send(Publish("t", b"x", 1, packet_id=1))
    assert harness.disk.wanted == 0.0
    acknowledge(receiver)
    assert publisher.take() == []
    harness.commit()
    assert publisher.take() == [PubAck(1)]


@pytest.mark.parametrize("how", ["drop", "end"])
def test_what_was_lent_to_a_client_that_goes_is_due_at_once(
    harness: DurableHarness, how: str
) -> None:
    receiver = harness.persistent("a")
    receiver.subscribe("t", 1)
    publisher = harness.connect("p")
    harness.commits = False
    publisher.send(Publish("t", b"x", 1, packet_id=1))
    if how == "drop":
        receiver.drop()
        assert harness.disk.wanted == 0.0
        assert publisher.take() == []
        harness.commit()
        assert harness.disk.wanted is not None  # the batch that was promised, though it is empty
        harness.commit()
    else:  # nobody is owed it any more
        gone = Properties(session_expiry_interval=0)
        receiver.send(Disconnect(properties=gone))
    assert publisher.take() == [PubAck(1)]


def test_what_is_not_acknowledged_in_time_is_written(harness: DurableHarness) -> None:
    receiver = harness.persistent("a")
    receiver.subscribe("t", 1)
    publisher = harness.connect("p")
    harness.commits = False
    publisher.send(Publish("t", b"x", 1, packet_id=1))
    harness.commit()  # it was lent for two batches
    assert harness.disk.wanted is not None
    assert (publisher.take(), harness.disk.count("delivery")) == ([], 0)
    harness.commit()
    assert (publisher.take(), harness.disk.count("delivery")) == ([PubAck(1)], 1)
    acknowledge(receiver)
    harness.commit()
    assert (harness.disk.count("message"), harness.disk.count("delivery")) == (0, 0)


def test_what_is_being_written_waits_for_that(harness: DurableHarness) -> None:
    receiver = harness.persistent("a")
    receiver.subscribe("t", 1)
    publisher = harness.connect("p")
    harness.commits = False
    publisher.send(Publish("t", b"x", 1, packet_id=1))
    harness.commit()
    for gather in harness.disk.before_batch:
        gather()
    acknowledge(receiver)
    assert publisher.take() == []
    harness.commit()
    assert publisher.take() == [PubAck(1)]
    assert harness.disk.count("delivery") == 0


def test_a_message_that_somebody_else_must_get_is_written_whole(harness: DurableHarness) -> None:
    for name in ("a", "b", "c"):
        harness.persistent(name).subscribe("t", 1)
    harness.clients[1].drop()
    publisher = harness.connect("p")
    harness.commits = False
    publisher.send(Publish("t", b"x", 1, packet_id=1))
    assert harness.disk.wanted == 0.0
    harness.commit()
    assert publisher.take() == [PubAck(1)]
    assert (harness.disk.count("message"), harness.disk.count("delivery")) == (1, 3)
    harness.crash()
    harness.commits = True
    assert [payloads(harness.persistent(name).take()) for name in "abc"] == [[b"x"]] * 3
