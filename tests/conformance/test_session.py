"""Sessions: resumed, discarded, kept without a connection (MQTT 5, sections 3.1.2.4 and 4.1)."""

import pytest

from tests.conformance.support import wire
from tests.conformance.support.codes import PROTOCOL_ERROR
from tests.conformance.support.peer import Peers
from tests.conformance.support.statements import keeps
from tests.conformance.support.wire import session_expiry

FOREVER = 0xFFFFFFFF


@keeps("5:3.1.2-6", "5:3.2.2-3", "3.1.1:3.1.2-4", "3.1.1:3.2.2-3")
def test_without_a_session_a_new_one_begins(peers: Peers, version: int) -> None:
    assert peers.persistent(version).connack.flags == 0


@keeps("5:3.1.2-5", "5:3.1.2-23", "5:3.2.2-3", "3.1.1:3.1.2-4", "3.1.1:3.2.2-2", "3.1.1:4.1.0-1")
@pytest.mark.parametrize("ending", ["disconnect", "close", "reset"])
def test_a_session_is_resumed_with_its_subscriptions(
    peers: Peers, version: int, topic: str, ending: str
) -> None:
    first = peers.persistent(version).subscribe((topic, 1))
    getattr(first, ending)()
    again = peers.persistent(version, first.client_id)
    assert again.connack.flags == 1
    again.publish_unanswered(topic, b"still subscribed")
    again.expect_publish(topic, b"still subscribed")


@keeps("5:3.1.2-4", "5:3.1.4-4", "5:3.2.2-2", "3.1.1:3.1.2-6", "3.1.1:3.1.4-3", "3.1.1:3.2.2-1")
def test_a_clean_start_discards_the_session(peers: Peers, version: int, topic: str) -> None:
    first = peers.persistent(version).subscribe((topic, 1))
    first.close()
    peers.connect(version).publish(topic, b"waits for nobody", 1)
    again = peers.connect(version, first.client_id, clean=True)
    assert again.connack.flags == 0
    again.publish(topic, b"for nobody", 1)
    again.expect_nothing()


@keeps("5:3.1.2-4", "5:3.2.2-2", "3.1.1:3.1.2-6")
def test_a_clean_start_discards_the_session_of_a_connection(
    peers: Peers, version: int, topic: str
) -> None:
    first = peers.persistent(version).subscribe((topic, 0))
    again = peers.connect(version, first.client_id)
    first.expect_error(0x8E)
    again.publish(topic, b"for nobody", 1)
    again.expect_nothing()


@keeps("3.1.1:3.1.2-6")
def test_a_clean_session_ends_with_its_connection(peers: Peers, topic: str) -> None:
    version = wire.MQTT_3_1_1
    first = peers.connect(version).subscribe((topic, 1))
    first.disconnect()
    assert peers.persistent(version, first.client_id).connack.flags == 0


@keeps("5:3.1.2.11.2", "5:4.1.0-2")
@pytest.mark.parametrize("properties", [b"", session_expiry(0)], ids=["absent", "0"])
def test_a_session_without_an_expiry_interval_ends_with_its_connection(
    peers: Peers, topic: str, properties: bytes
) -> None:
    first = peers.connect(clean=False, properties=properties).subscribe((topic, 1))
    first.disconnect()
    again = peers.persistent(client_id=first.client_id)
    assert again.connack.flags == 0


@keeps("5:3.1.2.11.2", "5:3.1.2-23")
@pytest.mark.parametrize("interval", [1_000_000, FOREVER - 1, FOREVER])
def test_long_expiry_intervals(peers: Peers, interval: int) -> None:
    first = peers.connect(properties=session_expiry(interval))
    first.close()
    again = peers.connect(
        client_id=first.client_id, clean=False, properties=session_expiry(interval)
    )
    assert again.connack.flags == 1


@keeps("5:4.1.0-1", "3.1.1:4.1.0-2", "3.1.1:4.1.0-1")
def test_a_session_is_there_as_long_as_its_connection(
    peers: Peers, version: int, topic: str
) -> None:
    peer = peers.connect(version).subscribe((topic, 2))
    for number in range(3):
        payload = b"%d" % number
        peer.publish_unanswered(topic, payload)
        peer.expect_publish(topic, payload)


@keeps("5:4.5.0-1", "3.1.1:3.1.2-5", "3.1.1:4.5.0-1", "5:4.6.0-5", "3.1.1:4.6.0-6")
def test_messages_wait_for_a_session_without_a_connection(
    peers: Peers, version: int, topic: str
) -> None:
    away = peers.persistent(version).subscribe((topic, 2))
    away.disconnect()
    publisher = peers.connect(version)
    for number in range(1, 4):
        publisher.publish(topic, b"%d" % number, 1, number)
        publisher.publish(topic, b"%d" % number, 2, number)
    again = peers.persistent(version, away.client_id)
    for number in range(1, 4):
        again.expect_publish(topic, b"%d" % number, qos=1)
        again.expect_publish(topic, b"%d" % number, qos=2)
    again.expect_nothing()


@keeps("5:4.5.0-1", "3.1.1:4.5.0-1")
def test_a_message_goes_to_every_session(peers: Peers, version: int, topic: str) -> None:
    connected = [peers.connect(version).subscribe((topic, 1)) for _ in range(3)]
    away = [peers.persistent(version).subscribe((topic, 1)) for _ in range(3)]
    for peer in away:
        peer.close()
    peers.connect(version).publish(topic, b"to all", 1)
    for peer in connected:
        peer.expect_publish(topic, b"to all", qos=1)
    for peer in away:
        peers.persistent(version, peer.client_id).expect_publish(topic, b"to all", qos=1)


@pytest.mark.parametrize("interval", [0, 600])
@keeps("5:3.1.2-23", "5:3.1.2.11.2")
def test_the_expiry_interval_of_the_last_connection_counts(peers: Peers, interval: int) -> None:
    first = peers.connect(properties=session_expiry(600 - interval))
    second = peers.connect(
        client_id=first.client_id, clean=False, properties=session_expiry(interval)
    )
    second.disconnect()
    again = peers.persistent(client_id=first.client_id)
    assert again.connack.flags == (1 if interval else 0)


@keeps("5:3.1.2.11.2", "5:3.14.2.2.2")
@pytest.mark.parametrize(("before", "at_last"), [(600, 0), (1, FOREVER), (0, 0)])
def test_the_interval_of_disconnect_counts(peers: Peers, before: int, at_last: int) -> None:
    """It ends a session that was to last, makes it last longer, or says the same."""
    first = peers.connect(properties=session_expiry(before))
    first.disconnect(0, session_expiry(at_last))
    again = peers.persistent(client_id=first.client_id)
    assert again.connack.flags == (1 if at_last else 0)


@keeps("5:3.14.2.2.2", "5:4.13.1-1", "5:3.14.2-2")
@pytest.mark.parametrize("properties", [b"", session_expiry(0)], ids=["absent", "0"])
def test_disconnect_cannot_make_a_session_last_that_was_not_to(
    peers: Peers, properties: bytes
) -> None:
    peer = peers.connect(properties=properties)
    peer.send(wire.disconnect(0, session_expiry(600)))
    peer.expect_error(PROTOCOL_ERROR)
    assert peers.persistent(client_id=peer.client_id).connack.flags == 0


@keeps("3.1.1:3.1.2-7")
def test_retained_messages_outlive_sessions(peers: Peers, topic: str) -> None:
    version = wire.MQTT_3_1_1
    first = peers.connect(version)
    first.publish(topic, b"kept", 1, retain=True)
    first.disconnect()
    again = peers.connect(version, first.client_id).subscribe((topic, 0))
    again.expect_publish(topic, b"kept", retain=True)


@keeps("5:3.1.3-2", "3.1.1:3.1.3-2")
def test_a_session_may_go_on_in_another_version(peers: Peers, topic: str) -> None:
    first = peers.persistent(wire.MQTT_3_1_1).subscribe((topic, 1))
    first.close()
    peers.connect().publish(topic, b"1", 1)
    second = peers.persistent(wire.MQTT_5, first.client_id)
    assert second.connack.flags == 1
    sent = second.expect_publish(topic, b"1", qos=1)
    second.close()
    third = peers.persistent(wire.MQTT_3_1_1, first.client_id)
    third.expect(wire.publish(wire.MQTT_3_1_1, topic, b"1", 1, sent.packet_id, dup=True))
