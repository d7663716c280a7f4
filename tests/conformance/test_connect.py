"""CONNECT and its answer (MQTT 5, sections 3.1 and 3.2)."""

import string

import pytest

from tests.conformance.support import wire
from tests.conformance.support.answers import read_connack
from tests.conformance.support.codes import BAD_AUTHENTICATION_METHOD, SESSION_TAKEN_OVER
from tests.conformance.support.peer import Peers
from tests.conformance.support.statements import keeps


@keeps("3.1.1:3.1.4-4", "3.1.1:3.2.0-1", "3.1.1:3.2.2-1", "3.1.1:3.1.3-5")
@pytest.mark.parametrize("version", [wire.MQTT_3_1, wire.MQTT_3_1_1])
def test_the_answer_before_mqtt_5(peers: Peers, version: int) -> None:
    peer = peers.open(version)
    peer.send(wire.connect(version, peers.name()))
    peer.expect(b"\x20\x02\x00\x00")
    peer.expect_nothing()


@keeps("5:3.1.4-5", "5:3.2.0-1", "5:3.2.2-1", "5:3.2.2-2", "5:2.2.2-1")
def test_the_answer_of_mqtt_5(peers: Peers) -> None:
    connack = peers.connect().connack
    assert (connack.flags, connack.code) == (0, 0)
    available = (
        wire.RETAIN_AVAILABLE,
        wire.WILDCARD_SUBSCRIPTION_AVAILABLE,
        wire.SUBSCRIPTION_IDENTIFIER_AVAILABLE,
        wire.SHARED_SUBSCRIPTION_AVAILABLE,
    )
    assert all(connack.properties.get(identifier, 1) == 1 for identifier in available)
    assert wire.MAXIMUM_QOS not in connack.properties  # 2 is said by saying nothing
    assert wire.ASSIGNED_CLIENT_IDENTIFIER not in connack.properties


@keeps("5:3.1.2-28", "5:4.12.0-6")
@pytest.mark.parametrize("asked", [None, 0, 1])
def test_nothing_that_was_not_asked_for_is_in_the_answer(peers: Peers, asked: int | None) -> None:
    properties = b""
    if asked is not None:
        properties = wire.byte_property(wire.REQUEST_RESPONSE_INFORMATION, asked)
    found = peers.connect(properties=properties).connack.properties
    if not asked:
        assert wire.RESPONSE_INFORMATION not in found
    assert wire.AUTHENTICATION_METHOD not in found
    assert wire.AUTHENTICATION_DATA not in found


@keeps("5:3.1.3-5", "3.1.1:3.1.3-5")
@pytest.mark.parametrize(
    "client_id",
    [
        "0",
        string.digits + string.ascii_letters[:13],
        string.ascii_letters[13:36],
        string.ascii_letters[36:],
        "-/+#$ \t",
        "é\U0001f321",
        "x" * 65_535,
    ],
    ids=len,
)
def test_client_identifiers_of_letters_and_digits_and_others(
    peers: Peers, version: int, client_id: str
) -> None:
    peers.connect(version, client_id).expect_nothing()


@keeps("5:3.1.3-6", "5:3.1.3-7", "5:3.2.2-16")
@pytest.mark.parametrize("clean", [True, False])
def test_a_client_without_an_identifier_is_given_one(peers: Peers, clean: bool) -> None:
    properties = wire.four_property(wire.SESSION_EXPIRY_INTERVAL, 600)
    found = [peers.connect(client_id="", clean=clean, properties=properties) for _ in range(3)]
    names = [each.connack.properties[wire.ASSIGNED_CLIENT_IDENTIFIER] for each in found]
    assert len(set(names)) == 3
    (name,) = {name for name in names[:1] if isinstance(name, bytes)}
    assert name
    found[0].close()
    again = peers.connect(client_id=name.decode(), clean=False, properties=properties)
    assert again.connack.flags == 1
    assert wire.ASSIGNED_CLIENT_IDENTIFIER not in again.connack.properties


@keeps("3.1.1:3.1.3-6", "3.1.1:3.1.3-7")
def test_clients_without_an_identifier_are_not_mixed_up(peers: Peers) -> None:
    first = peers.connect(wire.MQTT_3_1_1, "")
    second = peers.connect(wire.MQTT_3_1_1, "")
    first.expect_nothing()
    second.expect_nothing()


@keeps("3.1.1:3.1.3-7", "3.1.1:3.1.3-8", "3.1.1:3.1.3-9", "3.1.1:3.2.2-4", "3.1.1:3.2.2-5")
@pytest.mark.parametrize(
    ("version", "clean"), [(wire.MQTT_3_1_1, False), (wire.MQTT_3_1, False), (wire.MQTT_3_1, True)]
)
def test_no_identifier_for_a_session_that_lasts(peers: Peers, version: int, clean: bool) -> None:
    """MQTT 3.1, section 3.1: an identifier has 1 to 23 characters, else return code 2."""
    peer = peers.open(version)
    peer.send(wire.connect(version, "", clean=clean), wire.PINGREQ)
    peer.expect(b"\x20\x02\x00\x02")
    peer.expect_end()


@keeps("5:3.1.2-17", "5:3.1.2-19", "3.1.1:3.1.2-19", "3.1.1:3.1.2-21", "5:3.1.3-1", "3.1.1:3.1.3-1")
@pytest.mark.parametrize("username", ["user", "", "é"])
@pytest.mark.parametrize("password", [None, b"", b"\x00\xff\xfe"])
def test_user_name_and_password(
    peers: Peers, version: int, username: str, password: bytes | None
) -> None:
    peer = peers.connect(version, username=username, password=password)
    peer.expect_nothing()


@keeps("5:3.1.2-19")
def test_mqtt_5_allows_a_password_alone(peers: Peers) -> None:
    peers.connect(password=b"token").expect_nothing()


@keeps("5:3.1.3-2", "5:3.1.4-3", "5:3.14.4-1", "5:3.14.4-2", "5:4.13.2-1", "3.1.1:3.1.4-2")
@pytest.mark.parametrize("successor", [wire.MQTT_3_1, wire.MQTT_3_1_1, wire.MQTT_5])
def test_a_second_connection_ends_the_first(peers: Peers, version: int, successor: int) -> None:
    first = peers.connect(version)
    second = peers.connect(successor, first.client_id)
    first.expect_error(SESSION_TAKEN_OVER)
    second.expect_nothing()


@keeps("5:3.1.4-6", "3.1.1:3.1.4-5", "3.1.1:3.2.2-5")
def test_a_refused_connect_ends_no_other(peers: Peers, version: int) -> None:
    first = peers.connect(version)
    peer = peers.open(version)
    peer.send(wire.packet(wire.CONNECT, wire.connect(version, first.client_id)[2:] + b"x"))
    peer.expect_no_acceptance()
    first.expect_nothing()


@keeps("5:4.12.0-1", "5:3.1.4-2", "5:3.2.2-6", "5:3.2.2-7", "5:3.2.2-8")
@pytest.mark.parametrize("data", [b"", wire.text_property(wire.AUTHENTICATION_DATA, b"x")])
def test_an_unknown_authentication_method(peers: Peers, data: bytes) -> None:
    peer = peers.open()
    method = wire.text_property(wire.AUTHENTICATION_METHOD, "NONE-SUCH")
    peer.send(wire.connect(wire.MQTT_5, peers.name(), properties=method + data), wire.PINGREQ)
    peer.expect_no_acceptance(BAD_AUTHENTICATION_METHOD)


METHOD = wire.behind_length(wire.text_property(wire.AUTHENTICATION_METHOD, "NONE-SUCH"))


@keeps("5:4.12.0-7", "5:4.13.1-1")
@pytest.mark.parametrize("body", [b"", *(bytes([code]) + METHOD for code in (0x00, 0x18, 0x19))])
def test_auth_without_a_method_at_connect(peers: Peers, body: bytes) -> None:
    peer = peers.connect()
    peer.send(wire.packet(wire.AUTH, body))
    peer.expect_error(0x82)


@keeps("5:3.2.2-19", "5:3.2.2-20", "5:3.1.2-24")
def test_a_refusal_fits_the_clients_maximum(peers: Peers) -> None:
    """CONNACK has 5 bytes without properties; its Reason String would take it beyond 30."""
    peer = peers.open()
    method = wire.text_property(wire.AUTHENTICATION_METHOD, "NONE-SUCH" * 9)
    size = wire.four_property(wire.MAXIMUM_PACKET_SIZE, 30)
    peer.send(wire.connect(wire.MQTT_5, peers.name(), properties=method + size))
    raw = peer.receive()
    assert len(raw) <= 30
    assert read_connack(raw, wire.MQTT_5).code == BAD_AUTHENTICATION_METHOD
    peer.expect_end()
