"""Properties of messages as bytes, read when somebody asks and remembered if they come again."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.mqtt.codec.property_codec import read_properties, write_properties
from gateway.mqtt.codec.publish import (
    LARGEST_CACHED,
    MAXIMUM_CACHED,
    NO_PUBLISH_PROPERTIES,
    PropertyCache,
    block_bounds,
    of_fields,
    property_block,
)
from gateway.mqtt.errors import MalformedPacket, MqttError
from gateway.mqtt.packets import MQTT_5
from gateway.mqtt.properties import NO_PROPERTIES, Properties
from tests.mqtt.packet_strategies import properties as any_properties

PUBLISH = 3


def block(fields: Properties) -> bytes:
    """Return a property block without its length."""
    data = write_properties(fields, PUBLISH, MQTT_5)
    start, end = block_bounds(data, 0, len(data))
    assert end == len(data)
    return data[start:]


@pytest.mark.uncovered
@given(any_properties(PUBLISH, MQTT_5), st.booleans())
def test_fields_are_the_same_whether_or_not_they_are_kept(fields: Properties, keep: bool) -> None:
    found = of_fields(fields)
    assert (found.expiry, found.alias) == (fields.message_expiry_interval, fields.topic_alias)
    if not keep:
        found.forget_fields()
    written = property_block(found, found.expiry, fields.subscription_identifiers, found.alias or 0)
    assert read_properties(written, 0, len(written), PUBLISH, MQTT_5) == (fields, len(written))
    said = found.fields
    assert said.user_properties == fields.user_properties
    assert said.content_type == fields.content_type
    assert said.correlation_data == fields.correlation_data
    assert said.message_expiry_interval == fields.message_expiry_interval


def test_what_comes_again_is_read_once() -> None:
    cache = PropertyCache()
    first = block(Properties(content_type="a"))
    known = cache.read(first)
    assert cache.read(first) is known
    assert cache.misses == 1
    assert cache.read(block(Properties(content_type="b"))) is not known


def test_nothing_is_said_by_one_object() -> None:
    assert PropertyCache().read(b"") is NO_PUBLISH_PROPERTIES is of_fields(NO_PROPERTIES)


def test_what_is_remembered_is_bounded() -> None:
    cache = PropertyCache()
    large = block(Properties(content_type="x" * LARGEST_CACHED))
    assert cache.read(large).fields.content_type == "x" * LARGEST_CACHED
    assert cache.read(large) is not cache.read(large)
    first = block(Properties(content_type="first", message_expiry_interval=7))
    known = cache.read(first)
    for number in range(MAXIMUM_CACHED):
        cache.read(block(Properties(content_type=str(number))))
    assert cache.read(first) is not known
    assert known.fields == Properties(content_type="first", message_expiry_interval=7)
    assert known.fields is not known.fields


REFUSED = {
    "a subscription identifier": block(Properties(subscription_identifiers=(1,))),
    "one of another packet": b"\x1f\0\1x",
    "one twice": b"\x01\0\x01\0",
    "cut short": b"\x03\0\5x",
}


@pytest.mark.parametrize("data", REFUSED.values(), ids=REFUSED)
def test_what_no_client_may_send_is_not_remembered(data: bytes) -> None:
    cache = PropertyCache()
    for _ in range(2):
        with pytest.raises(MqttError):
            cache.read(data)


@pytest.mark.parametrize("data", [b"", b"\x80", b"\x01", b"\x05abcd", b"\xff\xff\xff\xff\x01"])
def test_a_block_that_is_not_whole_is_malformed(data: bytes) -> None:
    with pytest.raises(MalformedPacket):
        block_bounds(data, 0, len(data))


def test_a_long_block_has_a_longer_length() -> None:
    data = b"\xc8\x01" + bytes(200)
    assert block_bounds(data, 0, len(data)) == (2, 202)
