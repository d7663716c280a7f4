"""One message for many receivers."""

from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from gateway.mqtt.decode import decode
from gateway.mqtt.encode import PublishTemplate, encode
from gateway.mqtt.packets import Packet, Publish
from gateway.mqtt.properties import NO_PROPERTIES, Properties
from tests.mqtt.framed import body_of
from tests.mqtt.packet_strategies import binaries, four_bytes, topic_names
from tests.mqtt.packet_strategies import properties as any_properties

PUBLISH = 3
DESCRIBED = Properties(
    message_expiry_interval=60, content_type="text/plain", user_properties=(("k", "v"),)
)


def decoded(raw: bytes, version: int) -> Packet:
    first_byte, body = body_of(raw)
    return decode(body, first_byte, 0, len(body), version)


RECEIVERS = st.lists(
    st.tuples(
        st.integers(0, 2),
        st.booleans(),
        st.booleans(),
        st.integers(1, 0xFFFF),
        st.lists(st.integers(1, 268_435_455), max_size=2).map(tuple),
        st.none() | four_bytes,
    ),
    min_size=1,
    max_size=6,
)


@given(topic_names, st.data(), RECEIVERS, st.sampled_from([3, 4, 5]))
def test_each_receiver_gets_the_message(
    topic: str,
    data: st.DataObject,
    receivers: list[tuple[int, bool, bool, int, tuple[int, ...], int | None]],
    version: int,
) -> None:
    payload = data.draw(binaries)
    properties = data.draw(any_properties(PUBLISH, version))
    template = PublishTemplate(topic, payload, properties, version)
    for qos, retain, again, packet_id, identifiers, expiry in receivers:
        dup = again and qos > 0
        expected = Publish(topic, payload, qos, retain, dup, packet_id if qos else 0)
        if version == 5:
            left = properties.message_expiry_interval if expiry is None else expiry
            expected.properties = replace(
                properties,
                topic_alias=None,
                subscription_identifiers=identifiers,
                message_expiry_interval=left,
            )
        raw = template.wire(qos, retain, dup, packet_id, identifiers, expiry)
        assert decoded(raw, version) == expected


def test_without_properties_it_is_what_the_encoder_writes() -> None:
    for version in (3, 4, 5):
        template = PublishTemplate("t", b"x" * 200, NO_PROPERTIES, version)
        for qos, retain, dup in (
            (0, False, False),
            (0, True, False),
            (1, False, True),
            (2, True, True),
        ):
            packet = Publish("t", b"x" * 200, qos, retain, dup, 7 if qos else 0)
            assert template.wire(qos, retain, dup, 7) == encode(packet, version)


def test_receivers_of_qos_0_share_one_object() -> None:
    template = PublishTemplate("t", b"x", DESCRIBED, 5)
    assert template.wire(0, False, False, 0) is template.wire(0, False, False, 0)
    assert template.wire(0, True, False, 0) is not template.wire(0, False, False, 0)
    assert template.wire(0, False, False, 0, (), 10) is template.wire(0, False, False, 0, (), 10)


def test_an_interval_is_not_kept_for_the_next_receiver() -> None:
    template = PublishTemplate("t", b"x", DESCRIBED, 5)
    own = template.wire(0, False, False, 0)
    shorter = template.wire(0, False, False, 0, message_expiry_interval=59)
    assert shorter != own
    assert template.wire(0, False, False, 0) == own
    assert template.wire(0, False, False, 0, message_expiry_interval=59) == shorter


def test_subscription_identifiers_are_of_one_receiver_alone() -> None:
    template = PublishTemplate("t", b"x", NO_PROPERTIES, 5)
    for qos in (0, 1):
        first, second = (
            template.wire(qos, False, False, 1, (1,)),
            template.wire(qos, False, False, 1),
        )
        third = template.wire(qos, False, False, 1, (2,))
        assert [identifiers_of(raw) for raw in (first, second, third)] == [(1,), (), (2,)]


def identifiers_of(raw: bytes) -> tuple[int, ...]:
    packet = decoded(raw, 5)
    assert isinstance(packet, Publish)
    return packet.properties.subscription_identifiers


def test_what_belongs_to_the_publishers_connection_is_left_out() -> None:
    properties = Properties(topic_alias=1, subscription_identifiers=(9,))
    template = PublishTemplate("t", b"x", properties, 5)
    assert template.wire(0, False, False, 0) == b"\x30\x05\x00\x01t\x00x"
    assert (
        template.wire(1, False, False, 1, (2, 3))
        == b"\x32\x0b\x00\x01t\x00\x01\x04\x0b\x02\x0b\x03x"
    )


@given(topic_names, st.data(), RECEIVERS, st.integers(1, 0xFFFF), st.booleans())
def test_with_an_alias_each_receiver_gets_the_same_message(
    topic: str,
    data: st.DataObject,
    receivers: list[tuple[int, bool, bool, int, tuple[int, ...], int | None]],
    alias: int,
    with_topic: bool,
) -> None:
    properties = data.draw(any_properties(PUBLISH, 5))
    template = PublishTemplate(topic, data.draw(binaries), properties, 5)
    for qos, retain, _, packet_id, identifiers, expiry in receivers:
        raw = template.wire_with_alias(
            qos, retain, packet_id, alias, with_topic, identifiers, expiry
        )
        expected = decoded(template.wire(qos, retain, False, packet_id, identifiers, expiry), 5)
        assert isinstance(expected, Publish)
        expected.topic = topic if with_topic else ""
        expected.properties = replace(expected.properties, topic_alias=alias)
        assert decoded(raw, 5) == expected
        assert len(raw) <= template.largest(len(identifiers))


def test_what_an_alias_adds_and_saves() -> None:
    template = PublishTemplate("a/b/c", b"x", NO_PROPERTIES, 5)
    assert template.wire(0, False, False, 0) == b"\x30\x09\x00\x05a/b/c\x00x"
    assert template.wire_with_alias(0, False, 0, 2, True) == (
        b"\x30\x0c\x00\x05a/b/c\x03\x23\x00\x02x"
    )
    assert template.wire_with_alias(0, False, 0, 2, False) == b"\x30\x07\x00\x00\x03\x23\x00\x02x"
    assert template.wire_with_alias(1, True, 258, 9, False) == (
        b"\x33\x09\x00\x00\x01\x02\x03\x23\x00\x09x"
    )


def test_no_packet_is_larger_than_the_largest() -> None:
    described = Properties(content_type="x" * 40_000, message_expiry_interval=60)
    template = PublishTemplate("t", b"x" * 3_000_000, described, 5)
    raw = template.wire_with_alias(2, True, 1, 2, True, (268_435_455,) * 2)
    assert template.largest(2) - 1 <= len(raw) <= template.largest(2)


def test_with_an_alias_an_interval_is_not_kept_either() -> None:
    template = PublishTemplate("t", b"x", DESCRIBED, 5)
    own, shorter, again = (
        template.wire_with_alias(0, False, 0, 1, False, (), expiry) for expiry in (60, 59, 60)
    )
    assert shorter != own == again
