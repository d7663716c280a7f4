"""Bytes to packets: the tables of packet cases and of malformed cases, and any bytes at all."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.mqtt.codec.packet_codec import (
    PROXY_HEADERS,
    READERS,
    check_first_byte,
    check_first_packet,
    decode,
    encode,
)
from gateway.mqtt.errors import MalformedPacket, MqttError, ProtocolError
from gateway.mqtt.packets import MQTT_5, Connect, Packet, PacketType
from tests.mqtt.cases.case import MalformedCase, PacketCase
from tests.mqtt.framed import body_of
from tests.mqtt.packet_cases import MALFORMED_CASES, PACKET_CASES
from tests.mqtt.packet_strategies import packets_of_a_version
from tests.support.table import table

SURROUNDINGS = [
    (b"", b""),
    (b"\xff\xff", b"\x00" * 8),
    (b"\x00", b"\xff" * 8),
    (b"\x01", b"\x01" * 8),
]
"""What may stand before and behind a packet in the buffer: it must not make a difference."""

VERSIONED_CASES = [(case, version) for case in MALFORMED_CASES for version in case.versions]


def decode_body(first_byte: int, body: bytes, version: int) -> Packet:
    return decode(body, first_byte, 0, len(body), version)


@table("case", PACKET_CASES, ids=lambda case: case.name)
def test_a_packet_is_read(case: PacketCase) -> None:
    first_byte, body = body_of(case.raw)
    for before, behind in SURROUNDINGS:
        end = len(before) + len(body)
        packet = decode(before + body + behind, first_byte, len(before), end, case.version)
        assert packet == case.packet
        assert type(packet) is type(case.packet)


@table("case", PACKET_CASES, ids=lambda case: case.name)
def test_a_connect_tells_its_own_version(case: PacketCase) -> None:
    if isinstance(case.packet, Connect):
        first_byte, body = body_of(case.raw)
        assert decode_body(first_byte, body, 0) == case.packet
    else:
        with pytest.raises(MqttError, match="before CONNECT"):
            decode_body(*body_of(case.raw), 0)


@table(("case", "version"), VERSIONED_CASES, ids=lambda value: getattr(value, "name", str(value)))
def test_a_malformed_packet_is_refused(case: MalformedCase, version: int) -> None:
    for before, behind in SURROUNDINGS:
        buffer = before + case.body + behind
        end = len(before) + len(case.body)
        with pytest.raises(MqttError) as raised:
            decode(buffer, case.first_byte, len(before), end, version)
        assert type(raised.value) is case.error
        assert raised.value.reason_code == case.reason_code
        assert raised.value.reason == str(raised.value)


def test_a_publish_of_qos_3_is_malformed_before_its_length_is_known() -> None:
    with pytest.raises(MalformedPacket):
        check_first_byte(0x36, MQTT_5)


@pytest.mark.parametrize("head", [b"PROXY TCP4 ", PROXY_HEADERS[1]])
def test_a_proxy_s_header_before_connect_is_named(head: bytes) -> None:
    with pytest.raises(ProtocolError, match="proxy_protocol is not supported at this listener"):
        check_first_packet(head[0], head + b"more")


def test_the_cases_know_every_packet_type_in_every_version() -> None:
    known = {(case.raw[0] >> 4, case.version >= 5) for case in PACKET_CASES}
    pings = {(PacketType.PINGREQ, True), (PacketType.PINGRESP, True)}  # the same in all versions
    expected = {(packet_type, newer) for packet_type in PacketType for newer in (False, True)}
    assert known | pings == expected - {(PacketType.AUTH, False)}


def test_each_packet_type_has_a_reader() -> None:
    assert {first_byte >> 4 for first_byte in READERS} == set(PacketType) - {PacketType.PUBLISH}


@pytest.mark.uncovered
@given(packets_of_a_version())
def test_what_was_encoded_is_decoded(given_packet: tuple[Packet, int]) -> None:
    packet, version = given_packet
    assert decode_body(*body_of(encode(packet, version)), version) == packet


@given(st.binary(max_size=60), st.integers(0, 255), st.sampled_from([0, 3, 4, 5]))
def test_any_bytes_give_a_packet_or_one_of_two_errors(
    body: bytes, first_byte: int, version: int
) -> None:
    only_mqtt_errors(first_byte, body, version)


@given(packets_of_a_version(), st.data(), st.sampled_from([0, 3, 4, 5]))
def test_mutated_packets_give_a_packet_or_one_of_two_errors(
    given_packet: tuple[Packet, int], data: st.DataObject, version: int
) -> None:
    first_byte, body = body_of(encode(*given_packet))
    only_mqtt_errors(first_byte, data.draw(mutations(body)), version)


@table("case", PACKET_CASES, ids=lambda case: case.name)
def test_each_prefix_of_a_packet_gives_a_packet_or_one_of_two_errors(case: PacketCase) -> None:
    first_byte, body = body_of(case.raw)
    for end in range(min(len(body), 200)):
        for version in (3, 4, 5):
            only_mqtt_errors(first_byte, body[:end], version)


def only_mqtt_errors(first_byte: int, body: bytes, version: int) -> None:
    """Decode: a packet that comes out can be written, and nothing but MqttError is raised."""
    try:
        packet = decode_body(first_byte, body, version)
    except MqttError:
        return
    version = packet.protocol_version if isinstance(packet, Connect) else version
    assert decode_body(*body_of(encode(packet, version)), version) == packet


@st.composite
def mutations(draw: st.DrawFn, body: bytes) -> bytes:
    """Return `body` with a few bytes replaced, inserted or cut out."""
    changed = bytearray(body)
    for _ in range(draw(st.integers(1, 4))):
        start = draw(st.integers(0, len(changed)))
        stop = draw(st.integers(start, min(len(changed), start + 4)))
        changed[start:stop] = draw(st.binary(max_size=4))
    return bytes(changed)
