"""Packets that end a connection."""

import pytest

from gateway.mqtt.codec.packet_codec import encode
from gateway.mqtt.packets import MQTT_5, Connect, Disconnect, PingReq, PingResp, Publish
from gateway.mqtt.reason_codes import ReasonCode
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
    disconnect = client.take_only(Disconnect)
    assert disconnect.reason_code == code
    assert disconnect.properties.reason_string
    assert client.closed()
    assert not other.take()
    other.send(PingReq())
    assert other.take() == [PingResp()]
    assert harness.counters.count("tidegate/clients/protocol_errors") == 1
