import logging

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.broker.expiry import SWEEP_INTERVAL
from gateway.broker.settings import BrokerSettings
from gateway.mqtt.encode import encode
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
from gateway.session import traffic
from tests.support.broker_harness import Harness, MemoryClient

MALFORMED = ReasonCode.MALFORMED_PACKET
PROTOCOL = ReasonCode.PROTOCOL_ERROR

CASES: dict[str, tuple[bytes, ReasonCode]] = {
    "reserved packet type": (b"\x00\x00", MALFORMED),
    "wrong flags of SUBSCRIBE": (b"\x80\x06\x00\x01\x00\x00\x01a", MALFORMED),
    "QoS 3": (b"\x36\x06\x00\x01a\x00\x01\x00", MALFORMED),
    "DUP at QoS 0": (b"\x38\x04\x00\x01a\x00", MALFORMED),
    "remaining length of 5 bytes": (b"\x30\xff\xff\xff\xff\x01", MALFORMED),
    "topic beyond the packet": (b"\x30\x03\x00\x09a", MALFORMED),
    "topic that is not UTF-8": (b"\x30\x04\x00\x01\xff\x00", MALFORMED),
    "packet identifier 0": (b"\x32\x06\x00\x01a\x00\x00\x00", PROTOCOL),
    "SUBSCRIBE without a topic filter": (b"\x82\x03\x00\x01\x00", PROTOCOL),
    "UNSUBSCRIBE without a topic filter": (b"\xa2\x03\x00\x01\x00", PROTOCOL),
    "reserved bit of the subscription options": (
        b"\x82\x07\x00\x01\x00\x00\x01a\x40",
        MALFORMED,
    ),
    "unknown property": (b"\x30\x06\x00\x01a\x02\x7f\x00", MALFORMED),
    "a packet that only a server sends": (b"\x20\x03\x00\x00\x00", PROTOCOL),
    "PINGRESP": (b"\xd0\x00", PROTOCOL),
    "PINGREQ with a body": (b"\xc0\x01\x00", MALFORMED),
    "a second CONNECT": (encode(Connect("c"), MQTT_5), PROTOCOL),
    "a second CONNECT, of version 6": (
        b"\x10\x0e\x00\x04MQTT\x06\x02\x00\x00\x00\x00\x01c",
        PROTOCOL,
    ),
}


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
    "wrong flags of SUBSCRIBE": b"\x80\x06\x00\x01\x00\x01a\x00",
    "QoS 3": b"\x36\x05\x00\x01a\x00\x01",
    "topic beyond the packet": b"\x30\x03\x00\x09a",
    "empty topic": b"\x30\x02\x00\x00",
    "packet identifier 0": b"\x32\x05\x00\x01a\x00\x00",
    "SUBSCRIBE without a topic filter": b"\x82\x02\x00\x01",
    "options of MQTT 5": b"\x82\x06\x00\x01\x00\x01a\x04",
    "PUBACK with a reason code": b"\x40\x03\x00\x01\x00",
    "a packet that only a server sends": b"\x20\x02\x00\x00",
    "a second CONNECT": encode(Connect("c", MQTT_3_1_1), MQTT_3_1_1),
}


@pytest.mark.parametrize("data", CASES_3_1_1.values(), ids=CASES_3_1_1.keys())
def test_mqtt_3_1_1_is_closed_without_a_word(harness: Harness, data: bytes) -> None:
    client = harness.connect("c", MQTT_3_1_1)
    client.send_bytes(data)
    assert client.closed()
    assert not client.take()


def test_what_was_wrong_is_logged(harness: Harness, caplog: pytest.LogCaptureFixture) -> None:
    client = harness.connect()
    client.send_bytes(b"\x00\x00")
    (record,) = caplog.records
    assert record.levelno == logging.WARNING
    assert record.message.startswith("closing client 'c' at 192.0.2.7:40000: ")
    assert record.message.endswith("(0x81)")


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


def test_bytes_come_in_any_pieces(harness: Harness) -> None:
    client = harness.open()
    data = b"".join(
        encode(packet, MQTT_5)
        for packet in (
            Connect("c"),
            Subscribe(1, [SubscriptionRequest("a", 1)]),
            Publish("a", b"x" * 200, 1, packet_id=2),
        )
    )
    for position in range(len(data)):
        client.send_bytes(data[position : position + 1])
    assert [type(packet) for packet in client.take()] == [ConnAck, SubAck, Publish, PubAck]


def test_nothing_is_sent_behind_a_disconnect(harness: Harness) -> None:
    """A client that is being closed gets no message of the same turn."""
    client = harness.persistent()
    client.subscribe("a", 1)
    client.reads = False  # its output stays where we can see it
    client.send_bytes(b"\x00\x00")
    harness.publish("a", b"1", qos=1)
    harness.publish("a", b"2")
    client.reads = True
    harness.settle()
    assert [type(packet) for packet in client.take()] == [Disconnect]
    assert harness.persistent().take() == [Publish("a", b"1", 1, packet_id=1)]


def test_packets_and_bytes_are_counted(harness: Harness) -> None:
    harness.open().send_bytes(b"\x10")  # not a packet yet
    client = harness.connect()
    client.send(PingReq())
    assert harness.broker.packets() == (2, 2)
    client.drop()
    assert harness.broker.packets() == (2, 2)
    harness.connect()
    assert harness.broker.packets() == (3, 3)
    assert harness.broker.traffic.network_received == 1 + 2 * len(encode(Connect("c"), 5)) + 2


def test_packets_never_fall_while_a_connection_goes(harness: Harness) -> None:
    first = harness.persistent()
    first.reads = False
    before = harness.broker.packets()
    harness.persistent()
    received, sent = harness.broker.packets()
    assert received == before[0] + 1
    assert sent == before[1] + 2  # CONNACK here, DISCONNECT there


def test_the_broker_says_when_it_wants_to_be_woken(harness: Harness) -> None:
    assert harness.pass_time(0) == harness.now + SWEEP_INTERVAL
    harness.connect(keep_alive=2)
    assert harness.pass_time(0) == harness.now + 3


PACKETS: list[bytes] = [
    encode(packet, version)
    for version in (MQTT_3_1_1, MQTT_5)
    for packet in (
        Connect("c", version),
        Connect("other", version),
        Publish("a", b"x", 1, packet_id=1),
        Publish("a", b"x", 2, retain=True, packet_id=2),
        PubRel(2),
        PubAck(1),
        PubRec(1),
        PubComp(1),
        Subscribe(3, [SubscriptionRequest("#", 2)]),
        Unsubscribe(3, ["#"]),
        PingReq(),
        Disconnect(),
    )
]


def damaged(parts: list[bytes], changes: list[tuple[int, bytes]]) -> bytes:
    """Return the packets with other bytes, more or fewer, at some places."""
    data = bytearray(b"".join(parts))
    for place, change in changes:
        data[place : place + len(change) // 2] = change
    return bytes(data)


STREAMS = st.builds(
    damaged,
    st.lists(st.sampled_from(PACKETS), max_size=8),
    st.lists(st.tuples(st.integers(0, 120), st.binary(max_size=3)), max_size=4),
)


@given(connect=st.booleans(), version=st.sampled_from([MQTT_3_1_1, MQTT_5]), data=STREAMS)
def test_whatever_a_client_sends_others_are_served(
    connect: bool, version: int, data: bytes
) -> None:
    harness = Harness()
    other = harness.connect("bystander")
    other.subscribe("quiet/topic")
    client: MemoryClient = harness.connect("c", version) if connect else harness.open(version)
    client.reads = False  # what comes may be of either version
    client.send_bytes(data)
    harness.publish("quiet/topic")
    assert other.take() == [Publish("quiet/topic", b"x")]
    client.harness.broker.lost(client.client, harness.instant)
    assert harness.broker.connections == {other.client}


def test_what_one_read_gives_to_many_is_written_in_between(
    harness: Harness, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(traffic, "TURN_BYTES", 10_000)
    harness.broker.traffic.begin_turn()
    receivers = [harness.connect(f"r{number}") for number in range(20)]
    for receiver in receivers:
        receiver.subscribe("#")
    publisher = harness.connect("p")
    messages = [Publish("ab"[number % 2], b"%100d" % number) for number in range(40)]
    data = b"".join(encode(message, MQTT_5) for message in messages)
    most = pauses = 0
    while harness.broker.receive(publisher.client, data, harness.instant):
        data = b""
        pauses += 1
        most = max(most, sum(each.client.connection.output.size for each in receivers))
        harness.settle()
    harness.settle()
    assert pauses == 40 * 100 * 20 // 12_000  # a message may go beyond the bound
    assert most <= 1.1 * 12_000
    for receiver in receivers:
        assert receiver.take() == messages
