"""What is left out for its size: nothing but its head is kept, however its bytes come."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.mqtt.codec.packet_codec import encode
from gateway.mqtt.errors import MqttError
from gateway.mqtt.packets import MQTT_3_1_1, MQTT_5, Publish
from gateway.uplink.fleet.client import HEAD_BYTES, OversizedPublish, is_publish

LONGEST = "a" * 65_535


@given(
    topic=st.sampled_from(["a", "ü/b", LONGEST]),
    size=st.integers(128, 200_000),
    qos=st.integers(0, 2),
    version=st.sampled_from([MQTT_3_1_1, MQTT_5]),
    cuts=st.lists(st.integers(1, 70_000), max_size=5),
)
def test_topic_and_identifier_are_read_and_what_is_behind_is_left(
    topic: str, size: int, qos: int, version: int, cuts: list[int]
) -> None:
    packet = encode(Publish(topic, bytes(size), qos, packet_id=300 * qos), version)
    assert is_publish(packet[0])
    data, first = packet + b"behind", cuts[0] if cuts else len(packet)
    oversized = OversizedPublish(data[: max(first, 5)])
    for cut in cuts:
        piece, data = data[:cut], data[cut:]
        data = oversized.pass_by(piece) + data
        if oversized.over:
            break
    else:
        assert not oversized.over
        data = oversized.pass_by(data)
    assert data == b"behind"
    assert (oversized.over, oversized.size) == (True, len(packet))
    assert (oversized.qos, oversized.head()) == (qos, (topic, 300 * qos))
    assert len(oversized._head) <= HEAD_BYTES


@pytest.mark.parametrize("packet", [b"\x32\x04\0\x01a\0", b"\x32\x05\0\x01a\0\0", b"\x30\x01\0"])
def test_a_packet_without_a_head_is_no_mqtt(packet: bytes) -> None:
    oversized = OversizedPublish(packet)
    oversized.pass_by(packet)
    with pytest.raises(MqttError):
        oversized.head()
