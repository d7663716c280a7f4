"""Packets that were stored as they came are read back as the publication that they were."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.mqtt.codec.packet_codec import encode
from gateway.mqtt.packets import MQTT_3_1_1, MQTT_5, PubAck, Publish
from gateway.mqtt.properties import NO_PROPERTIES, Properties
from gateway.mqtt.stored_batch import stored_publication
from tests.support.broker.publications import packets, payloads, publish
from tests.support.table import table

DESCRIBED = Properties(content_type="t", message_expiry_interval=9)
SIZES = st.one_of(
    st.lists(st.sampled_from([0, 1, 3, 200]), min_size=1, max_size=6),
    st.integers(1, 6).map(lambda count: [3] * count),
)


@given(
    SIZES,
    st.sampled_from([MQTT_3_1_1, MQTT_5]),
    st.integers(0, 2),
    st.booleans(),
    st.sampled_from([NO_PROPERTIES, DESCRIBED]),
    st.data(),
)
def test_what_was_stored_is_read_back(
    sizes: list[int],
    version: int,
    qos: int,
    retain: bool,
    properties: Properties,
    data: st.DataObject,
) -> None:
    contents = [b"x" * size for size in sizes]
    whole = publish(contents, qos, version=version, retain=retain, properties=properties)
    first = data.draw(st.integers(0, len(sizes) - 1))
    count = data.draw(st.integers(1, len(sizes) - first))
    part = whole.packets.part(first, count)
    found = stored_publication(part.data, "a/b", mqtt5=version == MQTT_5)
    assert payloads(found) == contents[first : first + count]
    assert (found.topic, found.qos, found.retain) == ("a/b", qos, retain)
    assert found.packets.data == part.data
    assert [*found.packets.starts] == [*part.starts]
    assert [*found.packets.offsets] == [*part.offsets]
    assert found.packets.largest == part.largest
    if qos:
        assert [*found.identifiers()] == [*range(1 + first, 1 + first + count)]
    if version == MQTT_5:
        assert found.properties.fields == properties


GOOD = packets([b"xxx"] * 2)
BAD = {
    "nothing": b"",
    "not whole": GOOD[:-1],
    "not even a header": GOOD[:1],
    "something behind": GOOD + b"\0",
    "no PUBLISH": encode(PubAck(1), MQTT_5) * 2,
    "another topic": packets([b"xxx"] * 2, topic="a/c"),
    "then another topic": GOOD + packets([b"xxx"], topic="a/c"),
    "a remaining length of five bytes": b"\x32\xff\xff\xff\xff\x01",
    "a subscription identifier": encode(
        Publish("a/b", b"x", properties=Properties(subscription_identifiers=(1,))), MQTT_5
    ),
    "no packet identifier": packets([b"x"], first=0),
}


@table("data", BAD.values(), ids=BAD)
def test_what_is_no_batch_of_this_topic_is_an_error(data: bytes) -> None:
    with pytest.raises(ValueError, match="packets"):
        stored_publication(data, "a/b", mqtt5=True)


def test_properties_are_read_back() -> None:
    data = encode(Publish("a/b", b"x", properties=DESCRIBED), MQTT_5)
    found = stored_publication(data, "a/b", mqtt5=True)
    assert (found.properties.fields.content_type, found.packets.data) == ("t", data)


def test_packets_of_several_topics_are_read_back() -> None:
    topics = ["a/b", "t", "a/b", "x" * 200]
    data = b"".join(
        packets([b"%d" % number], topic=topic, first=number)
        for number, topic in enumerate(topics, start=1)
    )
    found = stored_publication(data, "", mqtt5=True)
    assert [found.topic_of(number) for number in range(found.count)] == topics
    assert payloads(found) == [b"1", b"2", b"3", b"4"]
    assert [*found.identifiers()] == [1, 2, 3, 4]
    part = found.part(1, 2)
    assert [part.topic, part.topic_of(1)] == ["t", "a/b"]
    assert data.endswith(part.packets.data + packets([b"4"], topic=topics[3], first=4))


NAMELESS = {
    "at first": packets([b"x"], topic=""),
    "later": GOOD + packets([b"x"], topic=""),
    "no text": GOOD + packets([b"x"]).replace(b"a/b", b"a/\xff"),
}


@table("data", NAMELESS.values(), ids=NAMELESS)
def test_each_needs_a_topic_name(data: bytes) -> None:
    with pytest.raises(ValueError, match="packets"):
        stored_publication(data, "", mqtt5=True)
