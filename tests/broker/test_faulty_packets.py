"""Packets that end a connection."""

import pytest

from gateway.mqtt.codec.packet_codec import encode
from gateway.mqtt.packets import (
    MQTT_3_1_1,
    MQTT_5,
    ConnAck,
    Connect,
    Disconnect,
    Packet,
    PingReq,
    PingResp,
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
)
from gateway.mqtt.reason_codes import ReasonCode
from gateway.settings.broker import BrokerSettings
from tests.support.broker.broker_harness import Harness

MALFORMED = ReasonCode.MALFORMED_PACKET
PROTOCOL = ReasonCode.PROTOCOL_ERROR

CASES: dict[str, tuple[bytes, ReasonCode]] = {
    "reserved packet type": (b"\x00\x00", MALFORMED),
    "remaining length of 5 bytes": (b"\x30\xff\xff\xff\xff\x01", MALFORMED),
    "topic beyond the packet": (b"\x30\x03\x00\x09a", MALFORMED),
    "packet identifier 0": (b"\x32\x06\x00\x01a\x00\x00\x00", PROTOCOL),
    "a packet that only a server sends": (b"\x20\x03\x00\x00\x00", PROTOCOL),
    "a second CONNECT": (encode(Connect("c"), MQTT_5), PROTOCOL),
    "a second CONNECT, of version 6": (
        b"\x10\x0e\x00\x04MQTT\x06\x02\x00\x00\x00\x00\x01c",
        PROTOCOL,
    ),
}
"""One of each kind: `tests/mqtt/cases` has all that are refused, and with which reason code."""


@pytest.mark.parametrize(("data", "code"), CASES.values(), ids=CASES.keys())
def test_a_faulty_packet_closes_that_connection_alone(
    harness: Harness, data: bytes, code: ReasonCode
) -> None:
    other, client = harness.connect("other"), harness.connect()
    other.subscribe("#")
    client.send_bytes(data + encode(Publish("after"), MQTT_5))
    (disconnect,) = client.take()
    assert isinstance(disconnect, Disconnect)
    assert disconnect.reason_code == code
    assert disconnect.properties.reason_string
    assert client.closed()
    assert not other.take()
    other.send(PingReq())
    assert other.take() == [PingResp()]
    assert harness.counters.count("tidegate/clients/protocol_errors") == 1


CASES_3_1_1: dict[str, bytes] = {
    "reserved packet type": b"\x00\x00",
    "AUTH": b"\xf0\x00",
    "packet identifier 0": b"\x32\x05\x00\x01a\x00\x00",
    "a packet that only a server sends": b"\x20\x02\x00\x00",
    "a second CONNECT": encode(Connect("c", MQTT_3_1_1), MQTT_3_1_1),
}


@pytest.mark.parametrize("data", CASES_3_1_1.values(), ids=CASES_3_1_1.keys())
def test_mqtt_3_1_1_is_closed_without_a_word(harness: Harness, data: bytes) -> None:
    client = harness.connect("c", MQTT_3_1_1)
    client.send_bytes(data)
    assert client.closed()
    assert not client.take()


def test_a_packet_may_have_the_maximum_size_and_no_more() -> None:
    harness = Harness(BrokerSettings(maximum_packet_size=1_024))
    client = harness.connect()
    largest = Publish("a", b"x" * (1_024 - 7))
    assert len(encode(largest, MQTT_5)) == 1_024
    client.send(largest)
    assert not client.closed()
    client.send(Publish("a", b"x" * (1_024 - 6)))
    (disconnect,) = client.take()
    assert isinstance(disconnect, Disconnect)
    assert disconnect.reason_code == ReasonCode.PACKET_TOO_LARGE


NEVER_CONNECTED: dict[str, tuple[bytes, Packet | None]] = {
    "PINGREQ": (b"\xc0\x00", None),
    "an HTTP client": (b"GET / HTTP/1.1\r\nHost: example\r\n" + b"Accept: */*\r\n" * 5, None),
    "a PUBLISH that looks like MQTT 5": (b"\x30\x08\x00\x04MQTT\x05\x00", None),
    "CONNECT of MQTT 3.1.1 with a reserved flag": (
        b"\x10\x0d\x00\x04MQTT\x04\x03\x00\x00\x00\x01c",
        None,
    ),
    "CONNECT of MQTT 5 with a reserved flag": (
        b"\x10\x0e\x00\x04MQTT\x05\x03\x00\x00\x00\x00\x01c",
        ConnAck(False, MALFORMED),
    ),
    "version 6": (
        b"\x10\x0e\x00\x04MQTT\x06\x02\x00\x00\x00\x00\x01c",
        ConnAck(False, ReasonCode.UNSUPPORTED_PROTOCOL_VERSION),
    ),
    "another protocol": (
        b"\x10\x0d\x00\x04AMQP\x04\x02\x00\x00\x00\x01c",
        ConnAck(False, ReasonCode.UNSUPPORTED_PROTOCOL_VERSION),
    ),
    "a user name flag without a user name": (
        b"\x10\x0e\x00\x04MQTT\x05\x82\x00\x00\x00\x00\x01c",
        ConnAck(False, MALFORMED),
    ),
}


@pytest.mark.parametrize(("data", "answer"), NEVER_CONNECTED.values(), ids=NEVER_CONNECTED.keys())
def test_a_connect_that_cannot_be_read(
    harness: Harness, data: bytes, answer: ConnAck | None
) -> None:
    client = harness.open(MQTT_5 if b"MQTT\x05" in data else MQTT_3_1_1)
    client.send_bytes(data)
    assert client.closed()
    assert not harness.broker.sessions
    if answer is None:
        assert not client.raw
    else:
        (connack,) = client.take()
        assert isinstance(connack, ConnAck)
        assert connack.reason_code == answer.reason_code


@pytest.mark.parametrize(
    "packet",
    [
        ConnAck(),
        PingResp(),
        SubAck(1, [ReasonCode.SUCCESS]),
        UnsubAck(1, [ReasonCode.SUCCESS]),
    ],
    ids=lambda packet: type(packet).__name__,
)
def test_packets_of_a_server_are_a_protocol_error(harness: Harness, packet: Packet) -> None:
    client = harness.connect()
    client.send(packet)
    (disconnect,) = client.take()
    assert isinstance(disconnect, Disconnect)
    assert disconnect.reason_code == PROTOCOL
    assert disconnect.properties.reason_string == f"{type(packet).__name__} from a client"


@pytest.mark.parametrize(
    "packet",
    [
        Publish("a"),
        PubAck(1),
        PubRec(1),
        PubRel(1),
        PubComp(1),
        Subscribe(1, [SubscriptionRequest("a")]),
        Unsubscribe(1, ["a"]),
        PingReq(),
        Disconnect(),
    ],
    ids=lambda packet: type(packet).__name__,
)
def test_connect_is_the_first_packet(harness: Harness, packet: Packet) -> None:
    client = harness.open()
    client.send(packet, Connect("c"))
    assert client.closed()
    assert not client.raw
    assert not harness.broker.sessions
