"""Wills that need no waiting (MQTT 5, section 3.1.2.5)."""

import pytest

from tests.conformance.support import wire
from tests.conformance.support.peer import Peer, Peers
from tests.conformance.support.statements import keeps
from tests.conformance.support.wire import Will, session_expiry, will_delay


@pytest.fixture
def watcher(peers: Peers, topic: str) -> Peer:
    """A client that gets the will as it was published."""
    return peers.connect().subscribe((topic, 2 | wire.RETAIN_AS_PUBLISHED))


@keeps("5:3.1.2-7", "5:3.1.2-8", "5:3.1.2-9", "5:3.1.2-12", "5:3.1.2-14")
@keeps("3.1.1:3.1.2-8", "3.1.1:3.1.2-9", "3.1.1:3.1.2-14", "3.1.1:3.1.2-16")
@pytest.mark.parametrize("qos", [0, 1, 2])
@pytest.mark.parametrize("ending", ["close", "reset"])
def test_a_lost_connection_publishes_the_will(
    peers: Peers, watcher: Peer, version: int, topic: str, qos: int, ending: str
) -> None:
    peer = peers.connect(version, will=Will(topic, b"gone", qos))
    getattr(peer, ending)()
    watcher.expect_publish(topic, b"gone", qos=qos)


@keeps("5:3.1.2-8", "3.1.1:3.1.2-8")
def test_a_malformed_packet_publishes_the_will(
    peers: Peers, watcher: Peer, version: int, topic: str
) -> None:
    peer = peers.connect(version, will=Will(topic))
    peer.send(b"\x00\x00")
    peer.expect_error(0x81)
    watcher.expect_publish(topic, b"gone")


@keeps("5:3.1.2-8", "3.1.1:3.1.2-8", "5:3.1.4-3", "3.1.1:3.1.4-2")
def test_another_connection_of_the_identifier_publishes_the_will(
    peers: Peers, watcher: Peer, version: int, topic: str
) -> None:
    peer = peers.connect(version, will=Will(topic))
    peers.connect(version, peer.client_id)
    watcher.expect_publish(topic, b"gone")
    watcher.expect_nothing()


@keeps("5:3.1.2-10", "5:3.14.4-3", "3.1.1:3.1.2-10", "3.1.1:3.14.4-3")
def test_a_disconnect_calls_the_will_off(
    peers: Peers, watcher: Peer, version: int, topic: str
) -> None:
    peer = peers.connect(version, will=Will(topic))
    peer.disconnect()
    peers.forget(peer)
    watcher.expect_nothing()


@keeps("5:3.14.4-3")
@pytest.mark.parametrize("code", [0x04, 0x80, 0x81, 0x83, 0x90, 0x93, 0x98, 0x99])
def test_a_disconnect_with_another_code_does_not(
    peers: Peers, watcher: Peer, topic: str, code: int
) -> None:
    peers.connect(will=Will(topic)).disconnect(code)
    watcher.expect_publish(topic, b"gone")


@keeps("5:3.1.2-10", "3.1.1:3.1.2-10", "3.1.1:3.1.2-12")
def test_a_will_is_not_published_twice(
    peers: Peers, watcher: Peer, version: int, topic: str
) -> None:
    peer = peers.persistent(version, will=Will(topic))
    peer.close()
    watcher.expect_publish(topic, b"gone")
    peers.persistent(version, peer.client_id).close()
    peers.forget(peer)
    watcher.expect_nothing()


@keeps("5:3.1.2-10", "3.1.1:3.1.2-10")
def test_a_will_that_was_called_off_stays_so(
    peers: Peers, watcher: Peer, version: int, topic: str
) -> None:
    peer = peers.persistent(version, will=Will(topic))
    peer.disconnect()
    peers.persistent(version, peer.client_id).reset()
    peers.forget(peer)
    watcher.expect_nothing()


@keeps("5:3.1.2-7", "3.1.1:3.1.2-8")
def test_the_will_of_the_present_connection_counts(
    peers: Peers, watcher: Peer, version: int, topic: str
) -> None:
    peer = peers.persistent(version, will=Will(topic, b"old"))
    peer.disconnect()
    peers.persistent(version, peer.client_id, will=Will(topic, b"new")).close()
    watcher.expect_publish(topic, b"new")
    watcher.expect_nothing()


@keeps("5:3.1.2-14", "3.1.1:3.1.2-16")
def test_a_will_without_retain_is_not_retained(
    peers: Peers, watcher: Peer, version: int, topic: str
) -> None:
    peers.connect(version, will=Will(topic)).close()
    watcher.expect_publish(topic, b"gone")
    peers.connect(version).subscribe((topic, 0)).expect_nothing()


@keeps("5:3.1.2-15", "3.1.1:3.1.2-17")
@pytest.mark.parametrize("qos", [0, 1, 2])
def test_a_will_with_retain_is_retained(
    peers: Peers, watcher: Peer, version: int, topic: str, qos: int
) -> None:
    peers.connect(version, will=Will(topic, b"gone", qos, retain=True)).close()
    watcher.expect_publish(topic, b"gone", qos=qos, retain=True)
    later = peers.connect(version).subscribe((topic, 2))
    later.expect_publish(topic, b"gone", qos=qos, retain=True)


@keeps("5:3.3.1-6", "3.1.1:3.3.1-10")
def test_an_empty_will_with_retain_removes_what_is_retained(
    peers: Peers, version: int, topic: str
) -> None:
    peers.connect(version).publish(topic, b"kept", 1, retain=True)
    watcher = peers.connect(version).subscribe((topic, 0))
    watcher.expect_publish(topic, b"kept", retain=True)
    peers.connect(version, will=Will(topic, b"", retain=True)).close()
    watcher.expect_publish(topic, b"")
    peers.connect(version).subscribe((topic, 0)).expect_nothing()


@keeps("3.1.1:3.1.2-12", "5:3.1.2-8")
def test_without_a_will_nothing_is_published(peers: Peers, watcher: Peer, version: int) -> None:
    peer = peers.connect(version)
    peer.reset()
    peers.forget(peer)
    watcher.expect_nothing()


@keeps("5:3.1.2-9", "5:3.1.3-10", "5:3.3.2-4", "5:3.3.2-15", "5:3.3.2-16", "5:3.3.2-20")
def test_the_properties_of_a_will_are_forwarded(peers: Peers, watcher: Peer, topic: str) -> None:
    properties = (
        wire.user_property("z", "1")
        + wire.text_property(wire.CONTENT_TYPE, "text/plain")
        + wire.user_property("a", "2")
        + wire.byte_property(wire.PAYLOAD_FORMAT_INDICATOR, 1)
        + wire.text_property(wire.RESPONSE_TOPIC, "answers")
        + wire.user_property("z", "1")
        + wire.text_property(wire.CORRELATION_DATA, b"\x00\xff")
        + wire.four_property(wire.MESSAGE_EXPIRY_INTERVAL, 0xFFFFFFFF)
        + will_delay(0)
    )
    peers.connect(will=Will(topic, properties=properties)).close()
    watcher.expect_publish(
        topic,
        b"gone",
        properties=[
            (wire.PAYLOAD_FORMAT_INDICATOR, 1),
            (wire.MESSAGE_EXPIRY_INTERVAL, 0xFFFFFFFF),
            (wire.CONTENT_TYPE, b"text/plain"),
            (wire.RESPONSE_TOPIC, b"answers"),
            (wire.CORRELATION_DATA, b"\x00\xff"),
            (wire.USER_PROPERTY, (b"z", b"1")),
            (wire.USER_PROPERTY, (b"a", b"2")),
            (wire.USER_PROPERTY, (b"z", b"1")),
        ],
    )


@keeps("5:3.1.2-8", "5:3.1.2.11.2")
@pytest.mark.parametrize("properties", [b"", session_expiry(0)], ids=["absent", "0"])
def test_a_delay_is_over_when_the_session_ends_with_the_connection(
    peers: Peers, watcher: Peer, topic: str, properties: bytes
) -> None:
    will = Will(topic, properties=will_delay(3600))
    peers.connect(properties=properties, will=will).close()
    watcher.expect_publish(topic, b"gone")


@keeps("5:3.1.2-8", "5:3.1.2-4", "5:3.14.4-3")
@pytest.mark.parametrize("ending", ["a clean start", "a disconnect"])
def test_the_end_of_the_session_ends_the_delay(
    peers: Peers, watcher: Peer, topic: str, ending: str
) -> None:
    peer = peers.connect(
        properties=session_expiry(3600), will=Will(topic, properties=will_delay(3600))
    )
    if ending == "a disconnect":
        peer.disconnect(0x04, session_expiry(0))
    else:
        peer.close()
        peers.forget(peer)
    watcher.expect_publish(topic, b"gone")
    watcher.expect_nothing()


@keeps("5:3.1.3-9", "5:3.1.2-8")
@pytest.mark.parametrize("ending", ["close", "reset", "take over"])
def test_a_new_connection_within_the_delay_calls_the_will_off(
    peers: Peers, watcher: Peer, topic: str, ending: str
) -> None:
    peer = peers.connect(
        properties=session_expiry(3600), will=Will(topic, properties=will_delay(3600))
    )
    if ending != "take over":
        getattr(peer, ending)()
    again = peers.connect(client_id=peer.client_id, clean=False, properties=session_expiry(0))
    assert again.connack.flags == 1
    again.close()  # and with it the session
    peers.forget(again)
    watcher.expect_nothing()


@keeps("3.1.1:4.7.2-1", "5:4.7.2-1")
@pytest.mark.parametrize("topic_name", ["$SYS/broker/version", "$SYS", "$anything"])
def test_a_will_on_a_topic_of_the_server_is_refused(
    peers: Peers, version: int, topic_name: str
) -> None:
    peer = peers.open(version)
    peer.send(wire.connect(version, peers.name(), will=Will(topic_name)))
    if version == wire.MQTT_5:
        peer.expect_no_acceptance(0x87)
    else:
        peer.expect(b"\x20\x02\x00\x05")
        peer.expect_end()
