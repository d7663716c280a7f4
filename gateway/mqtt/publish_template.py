"""One message encoded once for all of its receivers."""

from gateway.mqtt.fields import (
    write_byte,
    write_four_byte_integer,
    write_string,
    write_two_byte_integer,
    write_variable_byte_integer,
)
from gateway.mqtt.packets import MQTT_5, PacketType
from gateway.mqtt.properties import NO_PROPERTIES, Properties
from gateway.mqtt.property_codec import write_fields
from gateway.mqtt.publish import publish_first_byte
from gateway.mqtt.topic_aliases import ALIAS_PROPERTY

_MESSAGE_EXPIRY_INTERVAL = write_byte(0x02)
_SUBSCRIPTION_IDENTIFIER = write_byte(0x0B)
_TOPIC_ALIAS = write_byte(0x23)
_NO_TOPIC = write_string("")
_OF_ONE_RECEIVER = ("message_expiry_interval", "subscription_identifiers", "topic_alias")

_OWN_FIELDS = 1 + 4 + 2 + 4 + 5 + ALIAS_PROPERTY
"""Bytes of first byte, two lengths, packet identifier, expiry interval and alias at most."""

_LARGEST_IDENTIFIER = 5
"""Bytes of one subscription identifier at most."""


def identifier_fields(subscription_identifiers: tuple[int, ...]) -> bytes:
    """Return the properties that name these subscriptions [MQTT-3.3.4-3]."""
    return b"".join(
        _SUBSCRIPTION_IDENTIFIER + write_variable_byte_integer(identifier)
        for identifier in subscription_identifiers
    )


class PublishTemplate:
    """The PUBLISH packets of one message in one protocol version.

    Of `properties` the topic alias and the subscription identifiers are left out: they belong to
    one connection. A form is kept for each combination of flags (at most 12, and as many with a
    topic alias, for one message expiry interval at a time); receivers of QoS 0 share it whole, of
    the others all but the packet identifier, and with a topic alias all but these two numbers.
    What has subscription identifiers is put together each time.
    """

    __slots__ = (
        "_alias_forms",
        "_expiry",
        "_fields",
        "_forms",
        "_forms_expiry",
        "_payload",
        "_version",
        "topic",
    )

    def __init__(self, topic: str, payload: bytes, properties: Properties, version: int) -> None:
        self._version = version
        self.topic = write_string(topic)  # as it travels, behind its length
        self._payload = payload
        self._fields = b""
        if version == MQTT_5 and properties is not NO_PROPERTIES:
            self._fields = write_fields(properties, PacketType.PUBLISH, without=_OF_ONE_RECEIVER)
        self._expiry = properties.message_expiry_interval
        self._forms_expiry = self._expiry
        self._forms: dict[int, tuple[bytes, bytes]] = {}
        self._alias_forms: dict[int, tuple[bytes, bytes]] | None = None

    def wire(
        self,
        qos: int,
        retain: bool,
        dup: bool,
        packet_id: int,
        subscription_identifiers: tuple[int, ...] = (),
        message_expiry_interval: int | None = None,
    ) -> bytes:
        """Return the packet; `packet_id` counts for nothing at QoS 0.

        `message_expiry_interval` is what is left of it in seconds [MQTT-3.3.2-6]; None repeats
        the message's own. With the same flags and interval at QoS 0, and without subscription
        identifiers, it is the same object each time. Its length is what a receiver's Maximum
        Packet Size is held against.
        """
        expiry = self._expiry if message_expiry_interval is None else message_expiry_interval
        if expiry != self._forms_expiry:
            self._forget_forms(expiry)
        first_byte = publish_first_byte(qos, retain, dup)
        form = None if subscription_identifiers else self._forms.get(first_byte)
        if form is None:
            form = self._form(first_byte, qos, self._properties(subscription_identifiers, expiry))
            if not subscription_identifiers:
                self._forms[first_byte] = form
        head, tail = form
        return head + write_two_byte_integer(packet_id) + tail if qos else head

    def wire_with_alias(
        self,
        qos: int,
        retain: bool,
        packet_id: int,
        topic_alias: int,
        with_topic: bool,
        subscription_identifiers: tuple[int, ...] = (),
        message_expiry_interval: int | None = None,
    ) -> bytes:
        """Return the packet with a topic alias; with the topic name too, if that sets the alias.

        Only for MQTT 5, and never with DUP: what is sent again carries its topic name. All else
        is as in `wire`.
        """
        expiry = self._expiry if message_expiry_interval is None else message_expiry_interval
        if expiry != self._forms_expiry:
            self._forget_forms(expiry)
        if self._alias_forms is None:
            self._alias_forms = {}
        first_byte = publish_first_byte(qos, retain, dup=False)
        key = first_byte | with_topic << 8
        form = None if subscription_identifiers else self._alias_forms.get(key)
        if form is None:
            fields = self._fields_of_one(subscription_identifiers, expiry)
            form = self._alias_form(
                first_byte, qos, fields, self.topic if with_topic else _NO_TOPIC
            )
            if not subscription_identifiers:
                self._alias_forms[key] = form
        head, middle = form
        if qos:
            head += write_two_byte_integer(packet_id) + middle
        return head + write_two_byte_integer(topic_alias) + self._payload

    def largest(self, subscription_identifiers: int) -> int:
        """Return a length that no packet exceeds which has so many subscription identifiers."""
        return (
            _OWN_FIELDS
            + len(self.topic)
            + len(self._fields)
            + subscription_identifiers * _LARGEST_IDENTIFIER
            + len(self._payload)
        )

    def _forget_forms(self, expiry: int | None) -> None:
        self._forms.clear()
        self._alias_forms = None
        self._forms_expiry = expiry

    def _properties(self, subscription_identifiers: tuple[int, ...], expiry: int | None) -> bytes:
        if self._version < MQTT_5:
            return b""
        fields = self._fields_of_one(subscription_identifiers, expiry)
        return write_variable_byte_integer(len(fields)) + fields

    def _fields_of_one(
        self, subscription_identifiers: tuple[int, ...], expiry: int | None
    ) -> bytes:
        parts = [self._fields]
        if expiry is not None:
            parts.append(_MESSAGE_EXPIRY_INTERVAL + write_four_byte_integer(expiry))
        parts.append(identifier_fields(subscription_identifiers))
        return b"".join(parts)

    def _form(self, first_byte: int, qos: int, properties: bytes) -> tuple[bytes, bytes]:
        """Return what stands before and behind the packet identifier, or at QoS 0 (all, none)."""
        behind = properties + self._payload
        length = len(self.topic) + 2 * (qos > 0) + len(behind)
        head = write_byte(first_byte) + write_variable_byte_integer(length) + self.topic
        return (head, behind) if qos else (head + behind, b"")

    def _alias_form(
        self, first_byte: int, qos: int, fields: bytes, topic: bytes
    ) -> tuple[bytes, bytes]:
        """Return what stands before and behind the packet identifier, or at QoS 0 (all, none).

        The alias and the payload follow: all forms share the payload.
        """
        middle = write_variable_byte_integer(len(fields) + ALIAS_PROPERTY) + fields + _TOPIC_ALIAS
        length = len(topic) + 2 * (qos > 0) + len(middle) + 2 + len(self._payload)
        head = write_byte(first_byte) + write_variable_byte_integer(length) + topic
        return (head, middle) if qos else (head + middle, b"")
