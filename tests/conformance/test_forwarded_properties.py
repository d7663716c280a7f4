"""Properties of messages on their way through the server (MQTT 5, section 3.3.2.3)."""

import pytest

from tests.conformance.support import wire
from tests.conformance.support.peer import Peers
from tests.conformance.support.statements import keeps

PROPERTIES = [
    (wire.PAYLOAD_FORMAT_INDICATOR, 1),
    (wire.MESSAGE_EXPIRY_INTERVAL, 0xFFFFFFFF),
    (wire.CONTENT_TYPE, "text/plain; Ω".encode()),
    (wire.RESPONSE_TOPIC, "answers/Ω".encode()),
    (wire.CORRELATION_DATA, bytes(range(256))),
    (wire.USER_PROPERTY, (b"z", b"1")),
    (wire.USER_PROPERTY, (b"a", b"2")),
    (wire.USER_PROPERTY, (b"", b"")),
    (wire.USER_PROPERTY, (b"z", b"1")),
]
WRITTEN = (
    wire.user_property("z", "1")
    + wire.text_property(wire.CORRELATION_DATA, bytes(range(256)))
    + wire.user_property("a", "2")
    + wire.text_property(wire.CONTENT_TYPE, "text/plain; Ω")
    + wire.four_property(wire.MESSAGE_EXPIRY_INTERVAL, 0xFFFFFFFF)
    + wire.user_property("", "")
    + wire.byte_property(wire.PAYLOAD_FORMAT_INDICATOR, 1)
    + wire.text_property(wire.RESPONSE_TOPIC, "answers/Ω")
    + wire.user_property("z", "1")
)


@keeps("5:3.3.2-4", "5:3.3.2-15", "5:3.3.2-16", "5:3.3.2-17", "5:3.3.2-18", "5:3.3.2-20")
@keeps("5:3.3.2-13", "5:3.3.2-19")
@pytest.mark.parametrize("qos", [0, 1, 2])
def test_properties_are_forwarded(peers: Peers, topic: str, qos: int) -> None:
    watcher = peers.connect().subscribe((topic, 2))
    old = peers.connect(wire.MQTT_3_1_1).subscribe((topic, 2))
    peers.connect().publish(topic, b"x", qos, properties=WRITTEN)
    watcher.expect_publish(topic, b"x", qos=qos, properties=PROPERTIES)
    old.expect_publish(topic, b"x", qos=qos)


@keeps("5:3.3.2-4", "5:3.3.2-17", "5:3.3.2-18")
def test_properties_are_kept_with_a_retained_message(peers: Peers, topic: str) -> None:
    peers.connect().publish(topic, b"x", 1, retain=True, properties=WRITTEN)
    later = peers.connect().subscribe((topic, 0))
    later.expect_publish(topic, b"x", retain=True, properties=PROPERTIES)


@keeps("5:3.3.2-4")
@pytest.mark.parametrize("indicator", [0, 1])
@pytest.mark.parametrize("payload", [b"text", b"\xff\xfe"])
def test_the_payload_format_is_forwarded_whatever_the_payload(
    peers: Peers, topic: str, indicator: int, payload: bytes
) -> None:
    watcher = peers.connect().subscribe((topic, 0))
    properties = wire.byte_property(wire.PAYLOAD_FORMAT_INDICATOR, indicator)
    peers.connect().publish(topic, payload, 1, properties=properties)
    found = [(wire.PAYLOAD_FORMAT_INDICATOR, indicator)]
    watcher.expect_publish(topic, payload, properties=found)


@keeps("5:3.3.2-17", "5:3.3.2-18")
def test_user_properties_wait_with_their_message(peers: Peers, topic: str) -> None:
    away = peers.persistent().subscribe((topic, 1))
    away.close()
    properties = b"".join(wire.user_property(f"{number % 3}", f"{number}") for number in range(20))
    peers.connect().publish(topic, b"x", 1, properties=properties)
    again = peers.persistent(client_id=away.client_id)
    found = [(wire.USER_PROPERTY, (b"%d" % (number % 3), b"%d" % number)) for number in range(20)]
    again.expect_publish(topic, b"x", qos=1, properties=found)
