"""The packets of a publication in every form that a receiver may need, decoded again."""

from dataclasses import dataclass, replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.mqtt.aliases.outbound_aliases import SHORTEST_TOPIC, OutboundAliases
from gateway.mqtt.aliases.topic_aliases import AliasBudget
from gateway.mqtt.codec.fields import write_string
from gateway.mqtt.codec.packet_codec import decode
from gateway.mqtt.codec.packet_codec import encode as encode_packet
from gateway.mqtt.codec.publish import publish_first_byte
from gateway.mqtt.packets import MQTT_3_1_1, MQTT_5, Publish
from gateway.mqtt.properties import NO_PROPERTIES, Properties
from gateway.mqtt.publication import PacketBatch
from gateway.mqtt.publish_encoder import encode, encode_with_alias, write_packets, write_publish
from tests.mqtt.framed import body_of
from tests.mqtt.packet_strategies import properties as any_properties
from tests.mqtt.packet_strategies import topic_names
from tests.support.broker.outbound_aliases import DESCRIBED, opened
from tests.support.broker.publications import payloads, publish
from tests.support.table import table
from tests.support.versions import VERSIONS

PUBLISH = 3
ARRIVED = 100.0
NO_LIMIT = 0xFFFFFFFF


@dataclass(frozen=True)
class Receiver:
    """How a session is sent a message."""

    version: int
    qos: int
    retain: bool
    dup: bool
    packet_id: int
    identifiers: tuple[int, ...]
    now: float

    @property
    def first_byte(self) -> int:
        return publish_first_byte(self.qos, self.retain, self.dup and self.qos > 0)

    def expected(self, topic: str, payload: bytes, properties: Properties) -> Publish:
        publish = Publish(topic, payload, self.qos, self.retain, self.dup and self.qos > 0)
        if self.qos:
            publish.packet_id = self.packet_id
        if self.version == MQTT_5:
            left = properties.message_expiry_interval
            if left is not None:
                left = max(0, left - int(self.now - ARRIVED))
            publish.properties = replace(
                properties, subscription_identifiers=self.identifiers, message_expiry_interval=left
            )
        return publish

    def read(self, packets: PacketBatch, number: int) -> Publish:
        """Return a packet as the receiver reads it."""
        data = packets.slice(number, 1)
        if self.qos:
            data = bytes(packets.numbered(number, 1, self.packet_id))
        first_byte, body = body_of(data)
        packet = decode(body, first_byte, 0, len(body), self.version)
        assert isinstance(packet, Publish)
        assert len(data) <= packets.largest
        return packet


RECEIVERS = st.builds(
    Receiver,
    st.sampled_from(VERSIONS),
    st.integers(0, 2),
    st.booleans(),
    st.booleans(),
    st.integers(1, 0xFFFF),
    st.lists(st.integers(1, 268_435_455), max_size=2).map(tuple),
    st.sampled_from([ARRIVED, ARRIVED + 0.9, ARRIVED + 7.5, ARRIVED + 1e6]),
)
PAYLOADS = st.lists(st.binary(max_size=12) | st.just(b"x" * 140), min_size=1, max_size=4)


@pytest.mark.uncovered
@given(topic_names, PAYLOADS, st.data(), st.sampled_from(VERSIONS), st.lists(RECEIVERS, max_size=6))
def test_each_receiver_gets_the_messages(
    topic: str, contents: list[bytes], data: st.DataObject, version: int, receivers: list[Receiver]
) -> None:
    properties = replace(
        data.draw(any_properties(PUBLISH, version)), topic_alias=None, subscription_identifiers=()
    )
    qos, retain = data.draw(st.integers(0, 2)), data.draw(st.booleans())
    publication = publish(
        contents, qos, version=version, topic=topic, retain=retain, properties=properties
    )
    assert payloads(publication) == contents
    publication.arrived = ARRIVED
    if data.draw(st.booleans()):
        publication.share_forms()
    aliases = OutboundAliases(3, AliasBudget())
    for one in receivers:
        mqtt5 = one.version == MQTT_5
        packets = encode(publication, one.first_byte, mqtt5, one.identifiers, one.now)
        for number, payload in enumerate(contents):
            expected = one.expected(topic, payload, properties)
            assert one.read(packets, number) == expected
            if not mqtt5:
                continue
            packet = encode_with_alias(
                publication, number, one.first_byte, one.identifiers, one.now, aliases, NO_LIMIT
            )
            found = one.read(packet, 0)
            alias = found.properties.topic_alias
            assert found.topic == topic or alias is not None
            assert (
                replace(found, topic=topic, properties=replace(found.properties, topic_alias=None))
                == expected
            )


# a remaining length of 1, 2, 3 and 4 bytes begins at 0, 128, 16,384 and 2,097,152
LENGTHS = [0, 1, 119, 120, 121, 16_374, 16_375, 16_376, 16_377, 2_097_141, 2_097_143, 2_097_145]


@table("length", LENGTHS)
def test_it_is_what_encode_says(length: int) -> None:
    payload = b"x" * length
    whole = encode_packet(Publish("a/ä", payload, 1, True), MQTT_3_1_1)
    one = write_publish(0x33, write_string("a/ä"), payload, b"")
    assert (one.data, one.one(0), one.largest) == (whole, payload, len(whole))
    alone = encode_packet(Publish("a/ä", payload), MQTT_5)
    assert write_publish(0x30, write_string("a/ä"), payload, b"\0").data == alone
    assert write_packets(one, 0x30, write_string("a/ä"), b"\0").data == alone
    many = publish([payload, b"1", payload], 0, topic="a/ä")
    again = write_packets(many.packets, 0x33, write_string("a/ä"), b"")
    assert (again.slice(0, 1), again.slice(2, 1)) == (whole, whole)


def test_what_came_leaves_as_it_came_and_other_forms_are_made_once() -> None:
    publication = publish([b"1", b"22"], 1, properties=DESCRIBED)
    assert encode(publication, 0x32, True, (), 0.0) is publication.packets
    for shared in (False, True):
        for first_byte, mqtt5 in ((0x32, False), (0x33, True), (0x30, True), (0x30, False)):
            form = encode(publication, first_byte, mqtt5, (), 0.0)
            assert (encode(publication, first_byte, mqtt5, (), 0.0) is form) == shared
            assert (encode(publication, first_byte, mqtt5, (), 1.0) is form) == (
                shared and not mqtt5
            )
        publication.share_forms()
    kept = encode(publication, 0x30, True, (), 0.0)
    publication.forms = None
    assert encode(publication, 0x30, True, (), 0.0) is not kept


def with_alias(
    topic: str, payload: bytes, first_byte: int, aliases: OutboundAliases, limit: int = NO_LIMIT
) -> bytes:
    publication = publish([payload], 0, topic=topic)
    packet = encode_with_alias(publication, 0, first_byte, (), 0.0, aliases, limit)
    return packet.data


def test_what_an_alias_adds_and_saves() -> None:
    aliases = OutboundAliases(9, AliasBudget())
    first, again = (with_alias("a/b/c", b"x", 0x30, aliases) for _ in range(2))
    assert first == b"\x30\x0c\x00\x05a/b/c\x03\x23\x00\x01x"
    assert again == b"\x30\x07\x00\x00\x03\x23\x00\x01x"
    assert with_alias("a/b/c", b"x", 0x33, aliases) == (
        b"\x33\x09\x00\x00\x00\x00\x03\x23\x00\x01x"
    )
    assert with_alias("a", b"x", 0x30, aliases) == b"\x30\x05\x00\x01a\x00x"


@table("size", range(0, 300, 7))
def test_the_shortest_topic_with_an_alias_saves_bytes_whatever_its_properties(size: int) -> None:
    topic = "x" * (SHORTEST_TOPIC - 2)
    publication = publish([b""], 0, topic=topic, properties=Properties(content_type="x" * size))
    aliases = OutboundAliases(1, AliasBudget())
    for _ in range(2):
        packet = encode_with_alias(publication, 0, 0x30, (), 0.0, aliases, NO_LIMIT)
    assert len(packet.data) < len(publication.packets.data)


@table("qos", [0, 1, 2])
@table("properties", [NO_PROPERTIES, DESCRIBED])
@table("identifiers", [(), (7, 300)])
@table("count", [1, 2])
def test_no_packet_is_larger_than_the_client_takes(
    qos: int, properties: Properties, identifiers: tuple[int, ...], count: int
) -> None:
    publication = publish([b"x" * 100] * count, qos, topic="a/b/c/d/e", properties=properties)
    first_byte = publish_first_byte(qos, retain=False, dup=False)
    plain = encode(publication, first_byte, True, identifiers, 0.0).part(0, 1).data
    with_alias = set()
    for maximum in range(len(plain) - 1, len(plain) + 40):
        aliases = OutboundAliases(1, AliasBudget())
        found = [
            encode_with_alias(publication, 0, first_byte, identifiers, 0.0, aliases, maximum).data
            for _ in range(2)
        ]
        if found != [plain, plain]:
            assert max(map(len, found)) <= maximum
            with_alias.add(maximum)
    assert max(with_alias) == len(plain) + 39


@table("size", range(16_230, 16_260))
@table("described", range(119, 125))
def test_an_alias_may_lengthen_both_lengths(size: int, described: int) -> None:
    properties = Properties(content_type="x" * described)
    publication = publish([b"x" * size], 0, topic="a/longer", properties=properties)
    for more in range(6):
        limit = publication.packets.largest + more
        packet = encode_with_alias(publication, 0, 0x30, (), 0.0, opened(), limit)
        assert packet.largest <= limit
