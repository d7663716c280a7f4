"""A gateway with limits, with users and with WebSocket: what it says of them, and keeps to."""

from collections.abc import Callable, Iterator

import pytest

from tests.conformance.scenarios.scenarios import Since
from tests.conformance.support import wire
from tests.conformance.support.codes import (
    KEEP_ALIVE_TIMEOUT,
    NOT_AUTHORIZED,
    PACKET_TOO_LARGE,
    PAYLOAD_FORMAT_INVALID,
    RECEIVE_MAXIMUM_EXCEEDED,
    TOPIC_ALIAS_INVALID,
    TOPIC_FILTER_INVALID,
    TOPIC_NAME_INVALID,
)
from tests.conformance.support.limited_gateway import CONNECT_TIMEOUT, PASSWORD, USER, Ports
from tests.conformance.support.peer import Peers
from tests.conformance.support.statements import keeps
from tests.conformance.support.wire import PUBACK, PUBREC, Will, acknowledgement


def opened(port: int, name: Callable[[], str]) -> Iterator[Peers]:
    peers = Peers(port, name)
    yield peers
    peers.close()
    healthy = Peers(port, name)
    healthy.open().connect(name(), username=USER, password=PASSWORD).expect_nothing()
    healthy.close()


@pytest.fixture
def peers(ports: Ports, name: Callable[[], str]) -> Iterator[Peers]:
    """Clients of the listener with limits."""
    yield from opened(ports.limits, name)


@pytest.fixture
def guests(ports: Ports, name: Callable[[], str]) -> Iterator[Peers]:
    """Clients of the listener that wants a user name."""
    yield from opened(ports.users, name)


@pytest.fixture
def hurried(ports: Ports, name: Callable[[], str]) -> Iterator[Peers]:
    """Clients of the listener that hears nothing of a long keep alive."""
    yield from opened(ports.keep_alive, name)


@keeps("5:3.2.2-21")
@pytest.mark.parametrize("asked", [0, 2, 65_535])
def test_the_servers_keep_alive(hurried: Peers, asked: int) -> None:
    since = Since()
    peer = hurried.connect(keep_alive=asked)
    assert peer.connack.properties[wire.SERVER_KEEP_ALIVE] == 1
    if asked == 65_535:
        peer.expect_error(KEEP_ALIVE_TIMEOUT)
        assert since.seconds > 1.4


@keeps("5:3.2.2-22")
def test_a_keep_alive_within_the_limit_is_the_clients(hurried: Peers) -> None:
    assert wire.SERVER_KEEP_ALIVE not in hurried.connect(keep_alive=1).connack.properties


@keeps("5:3.2.2-15", "5:4.13.1-1", "3.1.1:4.8.0-1")
@pytest.mark.parametrize("excess", [0, 1])
def test_packets_of_the_maximum_and_one_byte_above(
    peers: Peers, version: int, topic: str, excess: int
) -> None:
    peer = peers.connect(version).subscribe((topic, 0))
    if version == wire.MQTT_5:
        assert peer.connack.properties[wire.MAXIMUM_PACKET_SIZE] == 1024
    data = wire.publish(version, topic, b"." * 900)
    data = wire.publish(version, topic, b"." * (900 + 1024 + excess - len(data)))
    assert len(data) == 1024 + excess
    peer.send(data)
    if excess:
        peer.expect_error(PACKET_TOO_LARGE)
    else:
        peer.expect(data)


@keeps("5:3.2.2-15", "5:3.1.4-1")
def test_a_connect_above_the_maximum(peers: Peers) -> None:
    peer = peers.open()
    peer.send(wire.connect(wire.MQTT_5, "x" * 1100))
    peer.expect_no_acceptance(PACKET_TOO_LARGE)


@keeps("5:3.3.4-7")
@pytest.mark.parametrize("qos", [1, 2])
def test_the_servers_receive_maximum(peers: Peers, topic: str, qos: int) -> None:
    peer = peers.connect()
    assert peer.connack.properties[wire.RECEIVE_MAXIMUM] == 5
    for number in range(1, 6):
        peer.send(wire.publish(wire.MQTT_5, topic, b"x", 2, number))
        peer.expect(acknowledgement(PUBREC, number, 0x10))
    peer.send(wire.publish(wire.MQTT_5, topic, b"x", 2, 3, dup=True))  # it comes again: no more
    peer.expect(acknowledgement(PUBREC, 3))
    peer.send(wire.publish(wire.MQTT_5, topic, b"x", qos, 6))
    peer.expect_error(RECEIVE_MAXIMUM_EXCEEDED)


@keeps("5:3.2.2-18", "5:3.2.2-17")
def test_without_topic_aliases_none_is_accepted(peers: Peers, topic: str) -> None:
    peer = peers.connect()
    assert wire.TOPIC_ALIAS_MAXIMUM not in peer.connack.properties
    peer.publish_unanswered(topic, properties=wire.two_property(wire.TOPIC_ALIAS, 1))
    peer.expect_error(TOPIC_ALIAS_INVALID)


@keeps("5:3.1.2-28")
@pytest.mark.parametrize("asked", [None, 0, 1])
def test_response_information_for_who_asks_for_it(peers: Peers, asked: int | None) -> None:
    properties = b""
    if asked is not None:
        properties = wire.byte_property(wire.REQUEST_RESPONSE_INFORMATION, asked)
    found = peers.connect(properties=properties).connack.properties
    expected = b"answers/" if asked else None
    assert found.get(wire.RESPONSE_INFORMATION) == expected


@keeps("5:3.1.2-23")
@pytest.mark.parametrize(("asked", "expected"), [(0, None), (100, None), (101, 100)])
def test_a_session_expiry_interval_that_is_too_long(
    peers: Peers, asked: int, expected: int | None
) -> None:
    properties = wire.four_property(wire.SESSION_EXPIRY_INTERVAL, asked)
    found = peers.connect(properties=properties).connack.properties
    assert found.get(wire.SESSION_EXPIRY_INTERVAL) == expected


TEXT_FORMAT = wire.byte_property(wire.PAYLOAD_FORMAT_INDICATOR, 1)


@keeps("5:3.4.2-1", "5:3.5.2-1", "5:3.3.2-4")
@pytest.mark.parametrize("payload", [b"\xff", b"\xed\xa0\x80", b"\xf4\x90\x80\x80"])
def test_a_payload_that_is_no_text_though_it_says_so(
    peers: Peers, topic: str, payload: bytes
) -> None:
    peer = peers.connect().subscribe((topic, 0))
    for qos, first_byte in ((1, PUBACK), (2, PUBREC)):
        peer.send(wire.publish(wire.MQTT_5, topic, payload, qos, 1, properties=TEXT_FORMAT))
        raw = peer.receive()
        assert raw[:1] + raw[2:5] == bytes([first_byte, 0, 1, PAYLOAD_FORMAT_INVALID])
    peer.publish_unanswered(topic, payload, properties=TEXT_FORMAT)
    peer.expect_error(PAYLOAD_FORMAT_INVALID)


@keeps("5:3.1.4-2", "5:3.2.2-8")
def test_a_will_that_is_no_text_though_it_says_so(peers: Peers) -> None:
    peer = peers.open()
    will = Will("t", b"\xff", properties=TEXT_FORMAT)
    peer.send(wire.connect(wire.MQTT_5, peers.name(), will=will))
    peer.expect_no_acceptance(PAYLOAD_FORMAT_INVALID)


@keeps("5:3.4.2-1", "5:3.9.3-2")
def test_topics_of_too_many_levels(peers: Peers) -> None:
    peer = peers.connect()
    peer.send(wire.subscribe(wire.MQTT_5, 1, ("1/2/3/4/5", 0), ("1/2/3/4/5/#", 0)))
    raw = peer.receive()
    assert raw[-2:] == bytes([0, TOPIC_FILTER_INVALID])
    peer.send(wire.publish(wire.MQTT_5, "1/2/3/4/5/6", b"x", 1, 1))
    raw = peer.receive()
    assert raw[:1] + raw[2:5] == bytes([PUBACK, 0, 1, TOPIC_NAME_INVALID])
    peer.publish_unanswered("1/2/3/4/5/6")
    peer.expect_error(TOPIC_NAME_INVALID)


BEGUN = [b"", b"\x10", b"\x10\x20\x00\x04MQTT\x05\x02\x00"]


@keeps("5:3.1.0-1", "3.1.1:3.1.0-1")
def test_a_connect_that_does_not_come(peers: Peers) -> None:
    since = Since()
    waiting = [peers.open() for _ in BEGUN]
    for peer, begun in zip(waiting, BEGUN, strict=True):
        peer.send(begun)
    for peer in waiting:
        peer.expect_end()
        assert since.seconds > CONNECT_TIMEOUT - 0.1


WRONG = [
    (None, None, 0x87, 5),
    (USER, None, 0x86, 4),
    (USER, b"", 0x86, 4),
    (USER, b"wrong", 0x86, 4),
    ("", PASSWORD, 0x86, 4),
    ("bert", PASSWORD, 0x86, 4),
]


@keeps("5:3.1.4-2", "5:3.2.2-6", "5:3.2.2-7", "5:3.1.4-6")
@keeps("3.1.1:3.2.2-4", "3.1.1:3.2.2-5", "3.1.1:3.1.4-5")
@pytest.mark.parametrize(("username", "password", "code", "old_code"), WRONG)
def test_who_is_not_let_in(
    guests: Peers,
    version: int,
    username: str | None,
    password: bytes | None,
    code: int,
    old_code: int,
) -> None:
    peer = guests.open(version)
    name = guests.name()
    peer.send(wire.connect(version, name, username=username, password=password), wire.PINGREQ)
    if version == wire.MQTT_5:
        peer.expect_no_acceptance(code)
    else:
        peer.expect(bytes([wire.CONNACK, 2, 0, old_code]))
        peer.expect_end()


@keeps("5:3.1.2-17", "5:3.1.2-19", "3.1.1:3.1.2-19", "3.1.1:3.1.2-21")
def test_who_is_let_in(guests: Peers, version: int) -> None:
    guests.connect(version, username=USER, password=PASSWORD).expect_nothing()


@keeps("5:3.1.4-2", "5:3.1.2-8")
def test_a_refused_client_leaves_session_and_will_of_another_alone(
    guests: Peers, topic: str
) -> None:
    watcher = guests.connect(username=USER, password=PASSWORD).subscribe((topic, 0))
    first = guests.connect(username=USER, password=PASSWORD, will=Will(topic))
    second = guests.open()
    second.send(wire.connect(wire.MQTT_5, first.client_id, will=Will(topic)))
    second.expect_no_acceptance(NOT_AUTHORIZED)
    first.expect_nothing()
    watcher.expect_nothing()
