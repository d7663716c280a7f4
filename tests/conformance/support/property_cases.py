"""Each property in each packet: where it may stand, how often, and what it then looks like."""

from collections.abc import Callable, Iterator
from typing import NamedTuple

from tests.conformance.support import wire
from tests.conformance.support.wire import (
    byte_property,
    four_property,
    subscription_identifier,
    text_property,
    two_property,
    user_property,
)

SAMPLES = {
    wire.PAYLOAD_FORMAT_INDICATOR: byte_property(wire.PAYLOAD_FORMAT_INDICATOR, 1),
    wire.MESSAGE_EXPIRY_INTERVAL: four_property(wire.MESSAGE_EXPIRY_INTERVAL, 60),
    wire.CONTENT_TYPE: text_property(wire.CONTENT_TYPE, "text/plain"),
    wire.RESPONSE_TOPIC: text_property(wire.RESPONSE_TOPIC, "answers"),
    wire.CORRELATION_DATA: text_property(wire.CORRELATION_DATA, b"\x00\xff"),
    wire.SUBSCRIPTION_IDENTIFIER: subscription_identifier(1),
    wire.SESSION_EXPIRY_INTERVAL: four_property(wire.SESSION_EXPIRY_INTERVAL, 0),
    wire.ASSIGNED_CLIENT_IDENTIFIER: text_property(wire.ASSIGNED_CLIENT_IDENTIFIER, "x"),
    wire.SERVER_KEEP_ALIVE: two_property(wire.SERVER_KEEP_ALIVE, 60),
    wire.AUTHENTICATION_METHOD: text_property(wire.AUTHENTICATION_METHOD, "NONE"),
    wire.AUTHENTICATION_DATA: text_property(wire.AUTHENTICATION_DATA, b"x"),
    wire.REQUEST_PROBLEM_INFORMATION: byte_property(wire.REQUEST_PROBLEM_INFORMATION, 1),
    wire.WILL_DELAY_INTERVAL: four_property(wire.WILL_DELAY_INTERVAL, 0),
    wire.REQUEST_RESPONSE_INFORMATION: byte_property(wire.REQUEST_RESPONSE_INFORMATION, 0),
    wire.RESPONSE_INFORMATION: text_property(wire.RESPONSE_INFORMATION, "x"),
    wire.SERVER_REFERENCE: text_property(wire.SERVER_REFERENCE, "x"),
    wire.REASON_STRING: text_property(wire.REASON_STRING, "because"),
    wire.RECEIVE_MAXIMUM: two_property(wire.RECEIVE_MAXIMUM, 10),
    wire.TOPIC_ALIAS_MAXIMUM: two_property(wire.TOPIC_ALIAS_MAXIMUM, 0),
    wire.TOPIC_ALIAS: two_property(wire.TOPIC_ALIAS, 1),
    wire.MAXIMUM_QOS: byte_property(wire.MAXIMUM_QOS, 1),
    wire.RETAIN_AVAILABLE: byte_property(wire.RETAIN_AVAILABLE, 1),
    wire.USER_PROPERTY: user_property("name", "value"),
    wire.MAXIMUM_PACKET_SIZE: four_property(wire.MAXIMUM_PACKET_SIZE, 4096),
    wire.WILDCARD_SUBSCRIPTION_AVAILABLE: byte_property(wire.WILDCARD_SUBSCRIPTION_AVAILABLE, 1),
    wire.SUBSCRIPTION_IDENTIFIER_AVAILABLE: byte_property(
        wire.SUBSCRIPTION_IDENTIFIER_AVAILABLE, 1
    ),
    wire.SHARED_SUBSCRIPTION_AVAILABLE: byte_property(wire.SHARED_SUBSCRIPTION_AVAILABLE, 1),
}
"""A well-formed property for every identifier that MQTT 5 defines (table 2-4)."""

UNKNOWN = {
    "0x00": b"\x00\x00",
    "0x04": b"\x04\x00",
    "0x0A": b"\x0a\x00",
    "0x20": b"\x20\x00",
    "0x2B": b"\x2b\x00",
    "0x7F": b"\x7f\x00",
    "of two bytes": b"\x81\x01\x00",
}
"""Identifiers that MQTT 5 does not define."""

_MESSAGE = frozenset(
    {
        wire.PAYLOAD_FORMAT_INDICATOR,
        wire.MESSAGE_EXPIRY_INTERVAL,
        wire.CONTENT_TYPE,
        wire.RESPONSE_TOPIC,
        wire.CORRELATION_DATA,
    }
)
_REASON = frozenset({wire.REASON_STRING})
_METHOD = frozenset({wire.AUTHENTICATION_METHOD, wire.AUTHENTICATION_DATA})


class Carrier(NamedTuple):
    """A packet with room for properties, and those that may stand there once."""

    name: str
    packet: Callable[[bytes], bytes]
    once: frozenset[int]
    before: bytes = b""  # what must stand before the property in question

    def misplaced(self) -> Iterator[tuple[str, bytes]]:
        """Yield a name and a packet for each property that may not stand there."""
        for identifier, sample in SAMPLES.items():
            if identifier not in self.once and identifier != wire.USER_PROPERTY:
                if identifier == wire.SUBSCRIPTION_IDENTIFIER and self.name == "PUBLISH":
                    continue  # not misplaced, but the server's alone [MQTT-3.3.4-6]
                yield f"property 0x{identifier:02X} in {self.name}", self._with(sample)
        for name, sample in UNKNOWN.items():
            yield f"unknown property {name} in {self.name}", self._with(sample)

    def twice(self) -> Iterator[tuple[str, bytes]]:
        """Yield a name and a packet for each property that may stand there only once."""
        for identifier in sorted(self.once):
            sample = SAMPLES[identifier]
            yield f"property 0x{identifier:02X} twice in {self.name}", self._with(sample * 2)

    def cut_short(self) -> Iterator[tuple[str, bytes]]:
        """Yield a name and a packet for each property that lacks its last byte."""
        for identifier in sorted(self.once | {wire.USER_PROPERTY}):
            sample = SAMPLES[identifier][:-1]
            yield f"property 0x{identifier:02X} cut short in {self.name}", self._with(sample)

    def _with(self, sample: bytes) -> bytes:
        begun = b"" if self.before and sample.startswith(self.before) else self.before
        return self.packet(begun + sample)


def _acknowledgement(name: str, first_byte: int) -> Carrier:
    def packet(properties: bytes) -> bytes:
        return wire.acknowledgement(first_byte, 1, 0, properties)

    return Carrier(name, packet, _REASON)


def connect(properties: bytes) -> bytes:
    return wire.connect(wire.MQTT_5, "x", properties=properties)


def connect_with_will(properties: bytes) -> bytes:
    return wire.connect(wire.MQTT_5, "x", will=wire.Will("t", properties=properties))


def publish(properties: bytes) -> bytes:
    return wire.publish(wire.MQTT_5, "t", properties=properties)


def subscribe(properties: bytes) -> bytes:
    return wire.subscribe(wire.MQTT_5, 1, ("t", 0), properties=properties)


def unsubscribe(properties: bytes) -> bytes:
    return wire.unsubscribe(wire.MQTT_5, 1, "t", properties=properties)


def disconnect(properties: bytes) -> bytes:
    return wire.disconnect(0, properties)


def auth(properties: bytes) -> bytes:
    return wire.packet(wire.AUTH, b"\x18", wire.behind_length(properties))


FIRST = [
    Carrier(
        "CONNECT",
        connect,
        _METHOD
        | {
            wire.SESSION_EXPIRY_INTERVAL,
            wire.REQUEST_PROBLEM_INFORMATION,
            wire.REQUEST_RESPONSE_INFORMATION,
            wire.RECEIVE_MAXIMUM,
            wire.TOPIC_ALIAS_MAXIMUM,
            wire.MAXIMUM_PACKET_SIZE,
        },
        SAMPLES[wire.AUTHENTICATION_METHOD],
    ),
    Carrier("a will", connect_with_will, _MESSAGE | {wire.WILL_DELAY_INTERVAL}),
]
"""What a connection begins with."""

LATER = [
    Carrier("PUBLISH", publish, _MESSAGE | {wire.TOPIC_ALIAS}),
    _acknowledgement("PUBACK", wire.PUBACK),
    _acknowledgement("PUBREC", wire.PUBREC),
    _acknowledgement("PUBREL", wire.PUBREL),
    _acknowledgement("PUBCOMP", wire.PUBCOMP),
    Carrier("SUBSCRIBE", subscribe, frozenset({wire.SUBSCRIPTION_IDENTIFIER})),
    Carrier("UNSUBSCRIBE", unsubscribe, frozenset()),
    Carrier(
        "DISCONNECT", disconnect, _REASON | {wire.SESSION_EXPIRY_INTERVAL, wire.SERVER_REFERENCE}
    ),
    Carrier("AUTH", auth, _METHOD | _REASON, SAMPLES[wire.AUTHENTICATION_METHOD]),
]
"""What follows an accepted CONNECT."""
