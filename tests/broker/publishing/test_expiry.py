from collections.abc import Iterable

import pytest

from gateway.broker.publishing.expiry import MESSAGES_AT_ONCE, SESSIONS_AT_ONCE, SWEEP_INTERVAL
from gateway.broker.store import StoresNothing
from gateway.mqtt.packets import MQTT_3_1_1, MQTT_5, Publish
from gateway.mqtt.properties import Properties
from gateway.settings.broker import BrokerSettings, RetainedExpiry
from tests.support.broker.broker_harness import REFUSING, Harness


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


def test_expired_messages_make_room_in_a_full_queue() -> None:
    harness = Harness(REFUSING)
    client = harness.persistent()
    client.subscribe("a", 1)
    client.drop()
    harness.session().queue.maximum_messages = 1
    harness.publish("a", qos=1, message_expiry=1)
    assert harness.publish("a", qos=1) == 0x97
    harness.pass_time(SWEEP_INTERVAL)
    assert harness.publish("a", b"new", qos=1) == 0


def finish_sweep(harness: Harness) -> None:
    """Let the turns go by that one look for what has expired takes."""
    for _ in range(5):
        harness.pass_time(0.001)


class Forgotten(StoresNothing):
    """A store that knows which retained messages it was told to forget."""

    def __init__(self) -> None:
        self.topics: list[str] = []

    def forget_retained(self, topics: Iterable[str]) -> None:
        self.topics += topics


def test_much_that_has_expired_is_dropped_in_pieces_from_the_disk_too() -> None:
    store = Forgotten()
    harness = Harness(store=store)
    finish_sweep(harness)
    for number in range(MESSAGES_AT_ONCE + 1):
        harness.publish(f"a/{number}", retain=True, message_expiry=1)
    harness.pass_time(SWEEP_INTERVAL)
    assert len(harness.broker.retained) == 1
    assert len(store.topics) == MESSAGES_AT_ONCE  # not later: one may be published again
    harness.pass_time(0.001)
    assert len(harness.broker.retained) == 0
    assert len(store.topics) == MESSAGES_AT_ONCE + 1


def test_many_queues_are_looked_at_in_pieces(harness: Harness) -> None:
    for number in range(SESSIONS_AT_ONCE + 1):
        client = harness.persistent(str(number))
        client.subscribe("a", 1)
        client.drop()
    finish_sweep(harness)
    harness.publish("a", qos=1, message_expiry=1)

    def waiting() -> int:
        return sum(len(session.queue) for session in harness.broker.sessions.values())

    harness.pass_time(SWEEP_INTERVAL)
    assert 0 < waiting() <= SESSIONS_AT_ONCE
    finish_sweep(harness)
    assert waiting() == 0


BOUNDED = (RetainedExpiry("state/keep/#", 1_000), RetainedExpiry("state/#", 60))


@pytest.mark.parametrize("version", [MQTT_3_1_1, MQTT_5])
@pytest.mark.parametrize(
    ("topic", "own", "kept"),
    [
        ("state/a", None, 60),
        ("state/a", 10, 10),
        ("state/a", 600, 60),
        ("state/keep/a", None, 1_000),
        ("else/a", None, None),
        ("else/a", 600, 600),
    ],
)
def test_what_is_retained_expires_by_its_topic(
    version: int, topic: str, own: int | None, kept: int | None
) -> None:
    if own is not None and version == MQTT_3_1_1:
        return  # it cannot say one
    harness = Harness(BrokerSettings(retained_expiry=BOUNDED))
    now = harness.connect("now")
    now.subscribe("#")
    publisher = harness.connect("publisher", version)
    publisher.send(Publish(topic, b"on", retain=True, properties=_expiring(own)))
    [live] = [each for each in now.take() if isinstance(each, Publish)]
    assert (live.payload, live.properties) == (b"on", _expiring(own))
    late = harness.connect("late")
    late.subscribe("#")
    [replayed] = [each for each in late.take() if isinstance(each, Publish)]
    assert (replayed.payload, replayed.retain) == (b"on", True)
    assert replayed.properties == _expiring(kept)
    harness.pass_time((kept or 10_000) + SWEEP_INTERVAL)
    harness.pass_time(SWEEP_INTERVAL)
    assert len(harness.broker.retained) == (kept is None)


def test_clearing_a_topic_whose_expiry_is_bounded(harness: Harness) -> None:
    harness = Harness(BrokerSettings(retained_expiry=BOUNDED))
    for payload in (b"on", b""):
        harness.publish("state/a", payload, retain=True)
    assert len(harness.broker.retained) == 0


def _expiring(seconds: int | None) -> Properties:
    return Properties(message_expiry_interval=seconds)
