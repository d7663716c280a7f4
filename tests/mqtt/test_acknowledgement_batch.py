"""Acknowledgements one behind the other, against one by one."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.mqtt.acknowledgement_batch import acknowledged_by, acknowledgements, template
from gateway.mqtt.codec.packet_codec import encode
from gateway.mqtt.packets import MQTT_3_1_1, MQTT_5, PubAck, PubRec
from gateway.mqtt.reason_codes import ReasonCode
from tests.support.table import table

PIECES = st.one_of(
    st.builds(lambda packet_id: b"\x40\2" + packet_id.to_bytes(2, "big"), st.integers(0, 65_535)),
    st.just(b"\x40\2\0\7"),
    st.sampled_from([b"\x50\2\0\7", b"\x40\3\0\7\x10", b"\x40", b"\xc0\0"]),
)


@pytest.mark.uncovered
@given(st.lists(PIECES, min_size=1, max_size=8).map(b"".join))
def test_what_is_taken_together_is_what_each_says(data: bytes) -> None:
    expected: list[int] = []
    for place in range(0, len(data) - 3, 4):
        if data[place : place + 2] != b"\x40\2":
            break
        expected.append(data[place + 2] << 8 | data[place + 3])
    assert [*acknowledged_by(data, 0x40)] == expected


@pytest.mark.parametrize("data", [b"\x50\2\0\7", b"\x40\3\0\7", b"\x40\2\0"])
def test_another_packet_is_none(data: bytes) -> None:
    assert not acknowledged_by(data, 0x40)


@table("count", [1, 2, 100])
@table("version", [MQTT_3_1_1, MQTT_5])
@table("code", [ReasonCode.SUCCESS, ReasonCode.QUOTA_EXCEEDED])
def test_many_are_as_each_is_encoded(count: int, version: int, code: ReasonCode) -> None:
    for kind in (PubAck, PubRec):
        for identifiers in (range(200, 200 + count), tuple(range(65_535, 65_535 - count, -1))):
            found = acknowledgements(template(kind, code, version), identifiers)
            assert found == b"".join(encode(kind(number, code), version) for number in identifiers)
