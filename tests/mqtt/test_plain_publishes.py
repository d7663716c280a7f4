"""Retained messages read one by one, beside what `Connection.next_packet` makes of them."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.mqtt.connection import Connection
from gateway.mqtt.encode import encode
from gateway.mqtt.errors import MqttError
from gateway.mqtt.packets import MQTT_3_1_1, MQTT_5, Publish
from gateway.mqtt.properties import NO_PROPERTIES, Properties
from gateway.mqtt.received_runs import count_plain, plain_publishes

NUMBER = b"\x01\x02"


def connection(version: int, data: bytes) -> Connection:
    found = Connection(200)
    found.version = version
    found.receive(data)
    return found


def body(topic: bytes, behind: bytes) -> bytes:
    return len(topic).to_bytes(2, "big") + topic + behind


def packet(body: bytes, first_byte: int = 0x33) -> bytes:
    return bytes((first_byte, len(body))) + body


OTHERS = {
    "nothing": (MQTT_3_1_1, b""),
    "not whole": (MQTT_3_1_1, packet(body(b"a", NUMBER))[:-1]),
    "no header": (MQTT_3_1_1, b"\x33"),
    "not retained": (MQTT_3_1_1, packet(body(b"a", NUMBER), 0x32)),
    "sent again": (MQTT_3_1_1, packet(body(b"a", NUMBER), 0x3B)),
    "above the maximum": (MQTT_3_1_1, b"\x33\xc8\x01" + body(b"a", NUMBER + b"x" * 195)),
    "a length written too long": (MQTT_3_1_1, b"\x33\x85\x00" + body(b"a", NUMBER)),
    "no room for a topic's length": (MQTT_3_1_1, packet(b"\0")),
    "a topic that reaches beyond": (MQTT_3_1_1, packet(b"\0\x09a" + NUMBER)),
    "no packet identifier": (MQTT_3_1_1, packet(body(b"a", b"\1"))),
    "packet identifier 0": (MQTT_3_1_1, packet(body(b"a", b"\0\0"))),
    "no topic": (MQTT_3_1_1, packet(body(b"", NUMBER))),
    "no UTF-8": (MQTT_3_1_1, packet(body(b"\xff", NUMBER))),
    "U+0000": (MQTT_3_1_1, packet(body(b"a\0", NUMBER))),
    "a wildcard": (MQTT_3_1_1, packet(body(b"a/+", NUMBER))),
    "another wildcard": (MQTT_3_1_1, packet(body(b"a/#", NUMBER))),
    "no length of properties": (MQTT_5, packet(body(b"a", NUMBER))),
    "a property": (MQTT_5, packet(body(b"a", NUMBER + b"\x02\x01\x01"))),
    "a topic alias": (MQTT_5, packet(body(b"", NUMBER + b"\x03\x23\x00\x01"))),
}


@pytest.mark.parametrize(("version", "data"), OTHERS.values(), ids=OTHERS)
def test_what_is_special_is_left_to_others(version: int, data: bytes) -> None:
    tested, other = connection(version, data), connection(version, data)
    packets = plain_publishes(tested, 1)
    assert not packets.take()
    count_plain(tested, packets, 0)
    outcomes = []
    for each in (tested, other):
        try:
            outcomes.append(repr(each.next_packet()))
        except MqttError as error:
            outcomes.append(repr(error))
    assert outcomes[0] == outcomes[1]
    assert tested.packets_received == other.packets_received


PUBLISHES = st.builds(
    Publish,
    st.sampled_from(["a", "a/b", "ä/€", "x" * 130]),
    st.binary(max_size=3),
    st.sampled_from([0, 1]),
    st.booleans(),
    packet_id=st.integers(1, 65_535),
    properties=st.sampled_from([NO_PROPERTIES, NO_PROPERTIES, Properties(content_type="x")]),
)


@given(
    st.lists(PUBLISHES, max_size=8), st.sampled_from([MQTT_3_1_1, MQTT_5]), st.sampled_from([0, 1])
)
def test_it_reads_what_connections_read(publishes: list[Publish], version: int, qos: int) -> None:
    data = b"".join(encode(each, version) for each in publishes)
    tested, other = connection(version, data), connection(version, data)
    packets = plain_publishes(tested, qos)
    while packets.take():
        expected = other.next_packet()
        assert isinstance(expected, Publish)
        assert (expected.qos, expected.retain, expected.dup) == (qos, True, False)
        assert (packets.topic, packets.payload) == (expected.topic, expected.payload)
        assert packets.packet_id == expected.packet_id
        assert expected.properties is NO_PROPERTIES
    count_plain(tested, packets, 0)
    following = other.next_packet()
    assert tested.next_packet() == following
    assert tested.packets_received == other.packets_received
    if isinstance(following, Publish) and following.retain and following.qos == qos:
        assert following.properties is not NO_PROPERTIES


def test_a_packet_that_is_given_back_comes_again() -> None:
    data = encode(Publish("a", b"1", 1, True, packet_id=1), MQTT_5)
    data += encode(Publish("b", b"2", 1, True, packet_id=2), MQTT_5)
    tested = connection(MQTT_5, data)
    packets = plain_publishes(tested, 1)
    assert packets.take()
    assert packets.take()
    packets.give_back()
    count_plain(tested, packets, 1)
    assert tested.packets_received == packets.count == tested.unacknowledged == 1
    again = tested.next_packet()
    assert isinstance(again, Publish)
    assert again.topic == "b"


def test_what_is_being_gathered_is_not_looked_at() -> None:
    tested = connection(MQTT_3_1_1, b"")
    for byte in packet(body(b"a", NUMBER + b"x")):
        tested.receive(bytes((byte,)))
        assert not plain_publishes(tested, 1).take()
    assert tested.next_packet() is not None
