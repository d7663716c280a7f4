from gateway.broker.publishing.expiry import SWEEP_INTERVAL
from gateway.mqtt.packets import Publish
from gateway.mqtt.properties import Properties
from tests.support.broker.broker_harness import Harness


def test_expired_retained_messages_are_dropped_in_time(harness: Harness) -> None:
    for _ in range(2):
        harness.publish("a", retain=True, message_expiry=10)
        harness.pass_time(0)
        assert len(harness.broker.retained) == 1
        harness.pass_time(max(SWEEP_INTERVAL, 10))
        assert len(harness.broker.retained) == 0


def test_a_client_that_is_away_holds_nothing_that_has_expired(harness: Harness) -> None:
    client = harness.persistent()
    client.subscribe("a", 1)
    client.drop()
    for expiry in (None, 5, 500):
        harness.publish("a", str(expiry).encode(), qos=1, message_expiry=expiry)
    harness.pass_time(0)
    assert len(harness.session().queue) == 3
    harness.pass_time(SWEEP_INTERVAL)
    assert len(harness.session().queue) == harness.broker.queue_memory.messages == 2
    assert harness.counters.count("publish/messages/expired") == 1
    harness.pass_time(SWEEP_INTERVAL)
    assert harness.counters.count("publish/messages/expired") == 1
    left = Properties(message_expiry_interval=480)
    assert harness.persistent().take() == [
        Publish("a", b"None", 1, packet_id=1),
        Publish("a", b"500", 1, packet_id=2, properties=left),
    ]


def test_expired_messages_make_room_in_a_full_queue(harness: Harness) -> None:
    client = harness.persistent()
    client.subscribe("a", 1)
    client.drop()
    harness.session().queue.maximum_messages = 1
    harness.publish("a", qos=1, message_expiry=1)
    assert harness.publish("a", qos=1) == 0x97
    harness.pass_time(SWEEP_INTERVAL)
    assert harness.publish("a", b"new", qos=1) == 0
