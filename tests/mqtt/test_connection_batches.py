"""PUBLISH packets taken together, against a connection that takes them one by one."""

from dataclasses import dataclass, replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.mqtt.codec.fields import write_variable_byte_integer
from gateway.mqtt.codec.packet_codec import decode, encode
from gateway.mqtt.connection import Connection
from gateway.mqtt.errors import MqttError
from gateway.mqtt.packets import MQTT_3_1_1, MQTT_5, PingReq, PubAck, Publish
from gateway.mqtt.properties import NO_PROPERTIES, Properties
from gateway.mqtt.publication import Publication
from tests.mqtt.framed import body_of
from tests.support.broker.publications import packets, payloads
from tests.support.table import table

MAXIMUM = 300
ALIASES = 2


def opened(version: int) -> Connection:
    connection = Connection(MAXIMUM, ALIASES)
    connection.version = version
    return connection


@dataclass(frozen=True)
class Said:
    """What one PUBLISH says, but for DUP, which is nobody else's business."""

    topic: str
    payload: bytes
    qos: int
    retain: bool
    packet_id: int
    properties: Properties


def said(packet: Publish) -> Said:
    properties = replace(packet.properties, topic_alias=None)
    return Said(
        packet.topic, packet.payload, packet.qos, packet.retain, packet.packet_id, properties
    )


def one_by_one(connection: Connection) -> list[object]:
    """Return what each packet that is there says, and the error behind them."""
    found: list[object] = []
    try:
        while (packet := connection.next_packet()) is not None:
            found.append(said(packet) if isinstance(packet, Publish) else packet)
    except MqttError as error:
        found.append((type(error), error.reason_code))
    return found


def each(publication: Publication) -> list[object]:
    """Return what each message says, having looked at the packets as they are forwarded."""
    found: list[object] = []
    numbers = publication.identifiers() if publication.qos else [0] * publication.count
    for number, packet_id in enumerate(numbers):
        data = publication.packets.slice(number, 1)
        if publication.qos:
            data = bytes(publication.packets.numbered(number, 1, packet_id))
        first_byte, body = body_of(data)
        assert data[1:] == write_variable_byte_integer(len(body)) + body  # in its shortest form
        packet = decode(body, first_byte, 0, len(body), MQTT_5 if publication.mqtt5 else MQTT_3_1_1)
        assert isinstance(packet, Publish)
        assert packet.topic.encode() == publication.name_of(number)[2:]
        assert packet.payload == publication.packets.one(number)
        assert (packet.dup, packet.properties.topic_alias) == (False, None)
        assert said(packet).properties == replace(publication.properties.fields, topic_alias=None)
        found.append(said(packet))
    return found


def together(
    connection: Connection, most: int, most_bytes: int, keep: int, joining: str = ""
) -> list[object]:
    """Return the same of a connection whose packets are taken together, also of topics that join.

    The names of these begin with `joining`.
    """
    found: list[object] = []

    def joins(name: bytes) -> bool:
        return name[2:].startswith(joining.encode())

    try:
        while first_byte := connection.framer.next_frame(connection.version):
            if first_byte & 0xF0 != 0x30:
                found.append(connection.packet())
                continue
            publication = connection.publication()
            size = len(publication.packets.data)
            connection.extend(publication, most, most_bytes, joins if joining else None)
            assert publication.count <= most
            assert len(publication.packets.data) <= max(size, most_bytes)
            connection.shorten(publication, keep)
            assert publication.count <= keep
            found += each(publication)
    except MqttError as error:
        found.append((type(error), error.reason_code))
    return found


DESCRIBED = Properties(content_type="t", user_properties=(("k", "v"),))
ALIAS = Properties(topic_alias=1)
NEVER = [  # the errors that a stream may end with
    bytes.fromhex("3600"),  # QoS 3
    bytes.fromhex("0000"),  # a reserved packet type
    bytes.fromhex("38030001 61"),
    bytes.fromhex("3201 00"),  # no room for a topic's length
    bytes.fromhex("3203000961"),  # a topic that reaches beyond
    bytes.fromhex("320400016101"),  # half a packet identifier
    bytes.fromhex("3203000161"),  # none
    bytes.fromhex("320500016100 00"),  # packet identifier 0
    bytes.fromhex("30ffffffff01"),
    bytes.fromhex("30ad02"),  # above the maximum
]


@st.composite
def publishes(draw: st.DrawFn, version: int) -> bytes:
    """Return some packets that are mostly alike, and may hold what is no good."""
    topic = draw(st.sampled_from(["a", "a", "a/ä"]))
    topics = [topic, topic, draw(st.sampled_from(["a", "b", "a/long"]))]
    qos = draw(st.integers(0, 2))
    properties = NO_PROPERTIES
    if version == MQTT_5:
        properties = draw(st.sampled_from([NO_PROPERTIES, NO_PROPERTIES, DESCRIBED, ALIAS]))
    retain, dup = draw(st.booleans()), qos > 0 and draw(st.integers(0, 5)) == 0
    if draw(st.booleans()) and properties.topic_alias:
        topics = [""]
    sizes = draw(st.lists(st.sampled_from([0, 3, 3, 3, 7, 130]), min_size=1, max_size=6))
    number = draw(st.integers(1, 65_500))
    data = b""
    for size in sizes:
        number += draw(st.sampled_from([1, 1, 1, 2]))
        packet_id = number if draw(st.integers(0, 19)) else 0  # which no packet may have
        topic = draw(st.sampled_from(topics))
        publish = Publish(topic, b"%d" % number * size, qos, retain, dup, packet_id, properties)
        packet = encode(publish, version)
        if draw(st.integers(0, 9)) == 0 and packet[1] < 0x80:
            packet = bytes((packet[0], packet[1] | 0x80, 0)) + packet[2:]
        data += packet
    return data


@st.composite
def streams(draw: st.DrawFn) -> tuple[int, list[bytes]]:
    """Return a version and a stream, in pieces."""
    version = draw(st.sampled_from([MQTT_3_1_1, MQTT_5]))
    packet = st.one_of(publishes(version), publishes(version), st.just(encode(PingReq(), version)))
    parts = draw(st.lists(packet, min_size=1, max_size=8))
    if draw(st.booleans()):
        parts.append(draw(st.sampled_from(NEVER)))
    data = b"".join(parts)
    cuts = sorted(draw(st.lists(st.integers(0, len(data)), max_size=4)))
    return version, [data[a:b] for a, b in zip([0, *cuts], [*cuts, len(data)], strict=True)]


@pytest.mark.uncovered
@given(
    streams(),
    st.integers(1, 8),
    st.sampled_from([0, 40, 300, 5_000]),
    st.sampled_from([1, 2, 99]),
    st.sampled_from(["", "a", "a/"]),
)
def test_it_is_as_if_each_came_by_itself(
    stream: tuple[int, list[bytes]], most: int, most_bytes: int, keep: int, joining: str
) -> None:
    version, pieces = stream
    tested, other = opened(version), opened(version)
    for piece in pieces:
        tested.framer.feed(piece)
        other.framer.feed(piece)
        expected = one_by_one(other)
        assert together(tested, most, most_bytes, keep, joining) == expected
        assert tested.packets_received == other.packets_received
        if expected and isinstance(expected[-1], tuple):
            break


@table("version", [MQTT_3_1_1, MQTT_5])
@table("last", NEVER, ids=bytes.hex)
def test_an_error_is_the_same_both_ways(version: int, last: bytes) -> None:
    data = packets([b"1", b"22", b"3"], version=version) + last
    tested, other = opened(version), opened(version)
    tested.framer.feed(data)
    other.framer.feed(data)
    found = together(tested, 10, 1_000, 10)
    assert found == one_by_one(other)
    assert isinstance(found[-1], tuple)


@table("count", [1, 2, 100])
@table("version", [MQTT_3_1_1, MQTT_5])
@table("qos", [0, 1, 2])
@table("size", [2, 50])
@table("properties", [NO_PROPERTIES, DESCRIBED])
def test_what_is_alike_is_one_publication(
    count: int, version: int, qos: int, size: int, properties: Properties
) -> None:
    connection = opened(version)
    contents = [b"%02d" % (n % 100) * (1 + n % size) for n in range(count)]
    connection.framer.feed(packets(contents, qos, version, properties=properties))
    assert connection.framer.next_frame(connection.version)
    publication = connection.publication()
    connection.extend(publication, 1_000, 1_000_000)
    assert payloads(publication) == contents
    assert connection.packets_received == count
    assert connection.framer.next_frame(connection.version) == 0


DIFFERENT: dict[str, dict[str, object]] = {
    "topic": {"topic": "a/c"},
    "retain": {"retain": True},
    "QoS": {"qos": 2},
    "properties": {"properties": DESCRIBED},
    "value of a property": {"properties": Properties(content_type="t", message_expiry_interval=8)},
}


@table("difference", DIFFERENT.values(), ids=DIFFERENT)
@table("payload", [b"12", b"long"])
def test_what_differs_is_another_publication(difference: dict[str, object], payload: bytes) -> None:
    connection = opened(MQTT_5)
    own = Properties(content_type="t", message_expiry_interval=9)
    data = packets([b"12"] * 3, properties=own)
    fields = {"properties": own, **difference}
    data += packets([payload], **fields)  # type: ignore[arg-type]  # by name
    connection.framer.feed(data)
    counts = []
    while connection.framer.next_frame(connection.version):
        publication = connection.publication()
        connection.extend(publication, 10, 1_000)
        counts.append(publication.count)
    assert counts == [3, 1]


@pytest.mark.parametrize("special", [{"dup": True}, {"properties": ALIAS}])
def test_what_cannot_be_forwarded_as_it_came_stays_alone(special: dict[str, object]) -> None:
    connection = opened(MQTT_5)
    packet = Publish("a", b"x", 1, packet_id=7, **special)  # type: ignore[arg-type]  # by name
    connection.framer.feed(encode(packet, MQTT_5) * 2)
    assert connection.framer.next_frame(connection.version)
    publication = connection.publication()
    connection.extend(publication, 10, 1_000)
    assert (publication.count, [*publication.identifiers()]) == (1, [7])
    assert publication.packets.data == encode(Publish("a", b"x", 1), MQTT_5)


def test_a_packet_identifier_of_0_is_left_for_its_turn() -> None:
    connection = opened(MQTT_5)
    data = [packets([b"x"], first=number) for number in (8, 9, 0, 10)]
    connection.framer.feed(b"".join(data))
    assert connection.framer.next_frame(connection.version)
    publication = connection.publication()
    connection.extend(publication, 10, 1_000)
    assert ([*publication.identifiers()], connection.packets_received) == ([8, 9], 2)
    assert connection.framer.next_frame(connection.version)
    with pytest.raises(MqttError):
        connection.publication()


ACKNOWLEDGED = {
    "one": (b"\x40\2\0\7", [7]),
    "three": (b"\x40\2\0\7\x40\2\0\5\x40\2\1\0", [7, 5, 256]),
    "up to another kind": (b"\x40\2\0\7\x50\2\0\5\x40\2\0\1", [7]),
    "up to one that says more": (b"\x40\2\0\7\x40\3\0\5\x10", [7]),
    "up to one that is not whole": (b"\x40\2\0\7\x40\2\0", [7]),
    "up to one without an identifier": (b"\x40\2\0\7\x40\2\0\0", [7]),
    "without an identifier": (b"\x40\2\0\0\x40\2\0\7", []),
    "it says more": (b"\x40\3\0\7\x10\x40\2\0\7", []),
    "a length written too long": (b"\x40\x82\0\0\7\x40\2\0\7", []),
    "more than are looked at": (b"\x40\2\0\7" * 2_000, [7] * 1_024),
}


@table(("data", "identifiers"), ACKNOWLEDGED.values(), ids=ACKNOWLEDGED)
def test_acknowledgements_are_taken_together(data: bytes, identifiers: list[int]) -> None:
    connection = opened(MQTT_5)
    connection.framer.feed(data)
    assert connection.framer.next_frame(connection.version) == 0x40
    assert [*connection.acknowledged()] == identifiers
    assert connection.packets_received == len(identifiers)
    if not identifiers and data[2:4] != b"\0\0":
        assert isinstance(connection.packet(), PubAck)


@pytest.mark.parametrize(
    "raw",
    [
        b"\x30\x04\x00\x01ax",
        b"\x30\x84\x00\x00\x01ax",
        b"\x30\x84\x80\x00\x00\x01ax",
        b"\x30\x80\x01\x00\x01a" + bytes(125),
        b"\x30\xff\x80\x00\x00\x01a" + bytes(124),
    ],
)
def test_a_remaining_length_that_is_longer_than_it_must_be_is_shortened(raw: bytes) -> None:
    connection = Connection(1 << 20)
    connection.version = MQTT_3_1_1
    connection.framer.feed(raw + raw)
    assert connection.framer.next_frame(connection.version) == 0x30
    publication = connection.publication()
    body = raw[raw.index(b"\x00\x01a") :]
    assert publication.packets.data == b"\x30" + write_variable_byte_integer(len(body)) + body
    assert connection.next_has_same_topic is (publication.packets.data == raw)
