"""Retained messages (MQTT 5, section 3.3.1.3)."""

import pytest

from tests.conformance.support import wire
from tests.conformance.support.answers import read_publish
from tests.conformance.support.peer import Peers
from tests.conformance.support.statements import keeps


@keeps("5:3.3.1-5", "5:3.3.1-9", "3.1.1:3.3.1-5", "3.1.1:3.3.1-6", "3.1.1:3.3.1-8")
@pytest.mark.parametrize("published", [0, 1, 2])
@pytest.mark.parametrize("granted", [0, 1, 2])
def test_a_new_subscription_gets_what_is_retained(
    peers: Peers, version: int, topic: str, published: int, granted: int
) -> None:
    peers.connect(version).publish(topic, b"kept", published, retain=True)
    later = peers.connect(version).subscribe((topic, granted))
    later.expect_publish(topic, b"kept", qos=min(published, granted), retain=True)
    later.expect_nothing()


@keeps("5:3.3.1-5", "3.1.1:3.3.1-5", "3.1.1:3.3.1-7")
@pytest.mark.parametrize("qos", [0, 1, 2])
def test_the_last_retained_message_counts(peers: Peers, version: int, topic: str, qos: int) -> None:
    peer = peers.connect(version)
    peer.publish(topic, b"old", 2, retain=True)
    peer.publish(topic, b"new", qos, retain=True)
    later = peers.connect(version).subscribe((topic, 2))
    later.expect_publish(topic, b"new", qos=qos, retain=True)
    later.expect_nothing()


@keeps("5:3.3.1-6", "5:3.3.1-7", "3.1.1:3.3.1-10", "3.1.1:3.3.1-11")
@pytest.mark.parametrize("qos", [0, 1, 2])
def test_an_empty_message_removes_what_is_retained(
    peers: Peers, version: int, topic: str, qos: int
) -> None:
    peer = peers.connect(version)
    peer.publish(topic, b"kept", 1, retain=True)
    watcher = peers.connect(version).subscribe((topic, 2))
    watcher.expect_publish(topic, b"kept", qos=1, retain=True)
    peer.publish(topic, b"", qos, retain=True)
    watcher.expect_publish(topic, b"", qos=qos)
    peers.connect(version).subscribe((topic, 0)).expect_nothing()


@keeps("5:3.3.1-7", "3.1.1:3.3.1-11")
def test_an_empty_message_is_not_retained(peers: Peers, version: int, topic: str) -> None:
    peers.connect(version).publish(topic, b"", 1, retain=True)
    peers.connect(version).subscribe((topic, 0)).expect_nothing()


@keeps("5:3.3.1-8", "3.1.1:3.3.1-12")
@pytest.mark.parametrize("payload", [b"", b"another"])
def test_a_message_without_retain_leaves_the_retained_one_alone(
    peers: Peers, version: int, topic: str, payload: bytes
) -> None:
    peer = peers.connect(version)
    peer.publish(topic, payload, 1)
    peers.connect(version).subscribe((topic, 0)).expect_nothing()
    peer.publish(topic, b"kept", 1, retain=True)
    peer.publish(topic, payload, 1)
    peers.connect(version).subscribe((topic, 0)).expect_publish(topic, b"kept", retain=True)


@keeps("5:3.3.1-12", "3.1.1:3.3.1-9")
@pytest.mark.parametrize("retain", [False, True])
@pytest.mark.parametrize("qos", [0, 1, 2])
def test_an_established_subscription_hears_no_retain(
    peers: Peers, version: int, topic: str, qos: int, retain: bool
) -> None:
    watcher = peers.connect(version).subscribe((topic, qos))
    peers.connect(version).publish(topic, b"x", qos, retain=retain)
    watcher.expect_publish(topic, b"x", qos=qos)


@keeps("5:3.3.1-13")
@pytest.mark.parametrize("retain", [False, True])
@pytest.mark.parametrize("qos", [0, 1, 2])
def test_retain_as_published(peers: Peers, topic: str, qos: int, retain: bool) -> None:
    watcher = peers.connect().subscribe((topic, qos | wire.RETAIN_AS_PUBLISHED))
    peers.connect().publish(topic, b"x", qos, retain=retain)
    watcher.expect_publish(topic, b"x", qos=qos, retain=retain)


@keeps("5:3.3.1-13", "5:3.3.1-12")
@pytest.mark.parametrize("option", [0, wire.RETAIN_AS_PUBLISHED])
def test_what_a_new_subscription_brings_has_retain(peers: Peers, topic: str, option: int) -> None:
    peers.connect().publish(topic, b"x", 1, retain=True)
    peers.connect().subscribe((topic, option)).expect_publish(topic, b"x", retain=True)


@keeps("5:3.3.1-13", "5:3.3.1-12")
@pytest.mark.parametrize("option", [0, wire.RETAIN_AS_PUBLISHED])
def test_retain_as_published_while_the_client_is_away(
    peers: Peers, topic: str, option: int
) -> None:
    away = peers.persistent().subscribe((topic, 1 | option))
    away.disconnect()
    peers.connect().publish(topic, b"x", 1, retain=True)
    again = peers.persistent(client_id=away.client_id)
    again.expect_publish(topic, b"x", qos=1, retain=bool(option))


@keeps("5:3.3.1-9", "5:3.8.4-4", "3.1.1:3.8.4-3", "3.1.1:3.3.1-6")
def test_each_subscribe_brings_what_is_retained(peers: Peers, version: int, topic: str) -> None:
    peers.connect(version).publish(topic, b"kept", 1, retain=True)
    peer = peers.connect(version)
    for _ in range(3):
        peer.subscribe((topic, 0))
        peer.expect_publish(topic, b"kept", retain=True)
    peer.expect_nothing()


@keeps("5:3.3.1-10")
def test_retain_handling_1_brings_it_for_a_new_subscription(peers: Peers, topic: str) -> None:
    peers.connect().publish(topic, b"kept", 1, retain=True)
    peer = peers.connect().subscribe((topic, wire.RETAIN_IF_NEW))
    peer.expect_publish(topic, b"kept", retain=True)
    peer.subscribe((topic, wire.RETAIN_IF_NEW | 1)).expect_nothing()
    peer.subscribe((f"{topic}/#", wire.RETAIN_IF_NEW))
    peer.expect_publish(topic, b"kept", retain=True)
    peer.send(wire.unsubscribe(wire.MQTT_5, 1, topic))
    peer.expect(wire.unsuback(wire.MQTT_5, 1, 0))
    peer.subscribe((topic, wire.RETAIN_IF_NEW))
    peer.expect_publish(topic, b"kept", retain=True)


@keeps("5:3.3.1-10", "5:3.1.2-5")
def test_retain_handling_1_and_a_subscription_of_before(peers: Peers, topic: str) -> None:
    peers.connect().publish(topic, b"kept", 1, retain=True)
    peer = peers.persistent().subscribe((topic, wire.NO_RETAINED))
    peer.disconnect()
    again = peers.persistent(client_id=peer.client_id)
    again.subscribe((topic, wire.RETAIN_IF_NEW)).expect_nothing()


@keeps("5:3.3.1-11")
def test_retain_handling_2_brings_nothing(peers: Peers, topic: str) -> None:
    peers.connect().publish(topic, b"kept", 1, retain=True)
    peer = peers.connect()
    for _ in range(2):
        peer.subscribe((topic, wire.NO_RETAINED)).expect_nothing()


@keeps("5:3.3.1-9", "3.1.1:3.3.1-6", "5:4.7.1", "3.1.1:4.7.1")
def test_a_wildcard_brings_each_matching_topics_message(
    peers: Peers, version: int, topic: str
) -> None:
    peer = peers.connect(version)
    names = [topic, f"{topic}/a", f"{topic}/a/b", f"{topic}/", f"{topic}/c"]
    for name in names:
        peer.publish(name, name.encode(), 1, retain=True)
    for topic_filter, expected in (
        (f"{topic}/#", names),
        (f"{topic}/+", [f"{topic}/a", f"{topic}/", f"{topic}/c"]),
        (f"{topic}/+/b", [f"{topic}/a/b"]),
        (f"{topic}/+/+/#", [f"{topic}/a/b"]),
        (f"{topic}/d", []),
    ):
        watcher = peers.connect(version).subscribe((topic_filter, 0))
        heard = [read_publish(watcher.receive(), version).topic for _ in expected]
        assert sorted(heard) == sorted(name.encode() for name in expected)
        watcher.expect_nothing()


@keeps("5:4.7.2-1", "3.1.1:4.7.2-1")
def test_a_leading_wildcard_brings_no_retained_topics_of_the_server(
    peers: Peers, version: int
) -> None:
    peer = peers.connect(version)
    peer.send(wire.subscribe(version, 1, ("+/broker/version", 0), ("+/broker/#", 0)))
    peer.expect(wire.suback(version, 1, 0, 0))
    peer.expect_nothing()
    peer.subscribe(("$SYS/broker/version", 0))
    assert read_publish(peer.receive(), version).topic == b"$SYS/broker/version"


@keeps("5:3.8.3-3")
def test_no_local_and_what_is_retained(peers: Peers, topic: str) -> None:
    """A retained message comes as the answer to a SUBSCRIBE, but No Local keeps one's own."""
    peer = peers.connect()
    peer.publish(topic, b"mine", 1, retain=True)
    peer.subscribe((topic, wire.NO_LOCAL)).expect_nothing()
    peers.connect().subscribe((topic, wire.NO_LOCAL)).expect_publish(topic, b"mine", retain=True)


@keeps("5:3.3.1-5", "3.1.1:3.3.1-5")
def test_a_retained_message_of_one_version_reaches_the_other(
    peers: Peers, version: int, topic: str
) -> None:
    peers.connect(version).publish(topic, b"kept", 1, retain=True)
    for other in (wire.MQTT_3_1, wire.MQTT_3_1_1, wire.MQTT_5):
        watcher = peers.connect(other).subscribe((topic, 0))
        watcher.expect_publish(topic, b"kept", retain=True)


@keeps("5:4.3.2-3", "3.1.1:4.4.0-1")
def test_a_retained_message_is_sent_again_with_its_flag(
    peers: Peers, version: int, topic: str
) -> None:
    peers.connect(version).publish(topic, b"kept", 1, retain=True)
    watcher = peers.persistent(version).subscribe((topic, 1))
    number = watcher.expect_publish(topic, b"kept", qos=1, retain=True).packet_id
    watcher.reset()
    again = peers.persistent(version, watcher.client_id)
    repeated = again.expect_publish(topic, b"kept", qos=1, retain=True, dup=True)
    assert repeated.packet_id == number
