"""UNSUBSCRIBE and its answer (MQTT 5, sections 3.10 and 3.11)."""

import pytest

from tests.conformance.support import wire
from tests.conformance.support.codes import NO_SUBSCRIPTION_EXISTED
from tests.conformance.support.peer import Peers
from tests.conformance.support.statements import keeps
from tests.conformance.support.wire import PUBACK, PUBCOMP, PUBREC, PUBREL, acknowledgement


@keeps("5:3.10.4-4", "5:3.10.4-5", "5:2.2.1-6", "5:3.11.3-2")
@keeps("3.1.1:3.10.4-4", "3.1.1:3.10.4-5", "3.1.1:2.3.1-7")
@pytest.mark.parametrize("packet_id", [1, 256, 65_535])
def test_an_unsubscribe_is_answered_even_if_it_deletes_nothing(
    peers: Peers, version: int, topic: str, packet_id: int
) -> None:
    peer = peers.connect(version).subscribe((topic, 0))
    for code in (0, NO_SUBSCRIPTION_EXISTED):
        peer.send(wire.unsubscribe(version, packet_id, topic))
        peer.expect(wire.unsuback(version, packet_id, code))


@keeps("5:3.10.4-6", "5:3.11.3-1", "5:3.11.3-2", "3.1.1:3.10.4-6")
def test_many_filters_get_one_answer_in_their_order(peers: Peers, version: int, topic: str) -> None:
    peer = peers.connect(version).subscribe((f"{topic}/a", 0), (f"{topic}/c", 1))
    filters = [f"{topic}/{name}" for name in ("a", "b", "c", "a")]
    peer.send(wire.unsubscribe(version, 9, *filters))
    none = NO_SUBSCRIPTION_EXISTED
    peer.expect(wire.unsuback(version, 9, 0, none, 0, none))


@keeps("5:3.10.4-1", "3.1.1:3.10.4-1", "5:4.7.3-4", "3.1.1:4.7.3-4")
def test_filters_are_compared_character_by_character(
    peers: Peers, version: int, topic: str
) -> None:
    peer = peers.connect(version).subscribe((f"{topic}/+", 0))
    others = [f"{topic}/#", f"{topic}/a", f"{topic}/+/", f"{topic.upper()}/+", "#", f"/{topic}/+"]
    peer.send(wire.unsubscribe(version, 9, *others))
    peer.expect(wire.unsuback(version, 9, *[NO_SUBSCRIPTION_EXISTED] * len(others)))
    peer.publish_unanswered(f"{topic}/a", b"x")
    peer.expect_publish(f"{topic}/a", b"x")


@keeps("5:3.10.4-2", "5:3.10.4-1", "3.1.1:3.10.4-2", "3.1.1:3.10.4-1")
def test_nothing_more_comes_for_a_filter_that_was_given_up(
    peers: Peers, version: int, topic: str
) -> None:
    peer = peers.connect(version).subscribe((f"{topic}/+", 1), (f"{topic}/b", 1))
    peer.send(wire.unsubscribe(version, 9, f"{topic}/+"))
    peer.expect(wire.unsuback(version, 9, 0))
    publisher = peers.connect(version)
    publisher.publish(f"{topic}/a", b"x", 1)
    publisher.publish(f"{topic}/b", b"x", 1)
    peer.expect_publish(f"{topic}/b", b"x", qos=1)
    peer.expect_nothing()


@keeps("5:3.10.4-3", "3.1.1:3.10.4-3")
def test_deliveries_that_began_are_completed(peers: Peers, version: int, topic: str) -> None:
    peer = peers.persistent(version).subscribe((topic, 2))
    publisher = peers.connect(version)
    publisher.publish(topic, b"1", 1)
    publisher.publish(topic, b"2", 2)
    first = peer.expect_publish(topic, b"1", qos=1).packet_id
    second = peer.expect_publish(topic, b"2", qos=2).packet_id
    peer.send(wire.unsubscribe(version, 9, topic))
    peer.expect(wire.unsuback(version, 9, 0))
    peer.disconnect()
    again = peers.persistent(version, peer.client_id)
    assert again.expect_publish(topic, b"1", qos=1, dup=True).packet_id == first
    assert again.expect_publish(topic, b"2", qos=2, dup=True).packet_id == second
    again.send(acknowledgement(PUBACK, first), acknowledgement(PUBREC, second))
    again.expect(acknowledgement(PUBREL, second))
    again.send(acknowledgement(PUBCOMP, second))
    again.expect_nothing()


@keeps("5:3.10.4-1", "5:4.8.2-1")
def test_a_shared_subscription_is_given_up_by_its_whole_filter(peers: Peers, topic: str) -> None:
    shared = f"$share/g/{topic}"
    peer = peers.connect().subscribe((shared, 0))
    peer.send(wire.unsubscribe(wire.MQTT_5, 1, topic, f"$share/h/{topic}", shared))
    none = NO_SUBSCRIPTION_EXISTED
    peer.expect(wire.unsuback(wire.MQTT_5, 1, none, none, 0))
    peers.connect().publish(topic, b"x", 1)
    peer.expect_nothing()


@keeps("5:3.10.4-4")
def test_an_unsubscribe_with_user_properties(peers: Peers, topic: str) -> None:
    peer = peers.connect().subscribe((topic, 0))
    properties = wire.user_property("a", "b") * 2
    peer.send(wire.unsubscribe(wire.MQTT_5, 1, topic, properties=properties))
    peer.expect(wire.unsuback(wire.MQTT_5, 1, 0))
