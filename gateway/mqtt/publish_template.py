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

_MESSAGE_EXPIRY_INTERVAL = write_byte(0x02)
_SUBSCRIPTION_IDENTIFIER = write_byte(0x0B)
_OF_ONE_RECEIVER = ("message_expiry_interval", "subscription_identifiers", "topic_alias")


class PublishTemplate:
    """The PUBLISH packets of one message in one protocol version.

    Of `properties` the topic alias and the subscription identifiers are left out: they belong to
    one connection. A form is kept for each combination of flags (at most 12, for one message
    expiry interval at a time); receivers of QoS 0 share it whole, of the others all but the
    packet identifier. What has subscription identifiers is put together each time.
    """

    __slots__ = ("_expiry", "_fields", "_forms", "_forms_expiry", "_payload", "_topic", "_version")

    def __init__(self, topic: str, payload: bytes, properties: Properties, version: int) -> None:
        self._version = version
        self._topic = write_string(topic)
        self._payload = payload
        self._fields = b""
        if version == MQTT_5 and properties is not NO_PROPERTIES:
            self._fields = write_fields(properties, PacketType.PUBLISH, without=_OF_ONE_RECEIVER)
        self._expiry = properties.message_expiry_interval
        self._forms_expiry = self._expiry
        self._forms: dict[int, tuple[bytes, bytes]] = {}

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
            self._forms.clear()
            self._forms_expiry = expiry
        first_byte = publish_first_byte(qos, retain, dup)
        form = None if subscription_identifiers else self._forms.get(first_byte)
        if form is None:
            form = self._form(first_byte, qos, self._properties(subscription_identifiers, expiry))
            if not subscription_identifiers:
                self._forms[first_byte] = form
        head, tail = form
        return head + write_two_byte_integer(packet_id) + tail if qos else head

    def _properties(self, subscription_identifiers: tuple[int, ...], expiry: int | None) -> bytes:
        if self._version < MQTT_5:
            return b""
        parts = [self._fields]
        if expiry is not None:
            parts.append(_MESSAGE_EXPIRY_INTERVAL + write_four_byte_integer(expiry))
        parts += [  # [MQTT-3.3.4-3]
            _SUBSCRIPTION_IDENTIFIER + write_variable_byte_integer(identifier)
            for identifier in subscription_identifiers
        ]
        written = b"".join(parts)
        return write_variable_byte_integer(len(written)) + written

    def _form(self, first_byte: int, qos: int, properties: bytes) -> tuple[bytes, bytes]:
        """Return what stands before and behind the packet identifier, or at QoS 0 (all, none)."""
        behind = properties + self._payload
        length = len(self._topic) + 2 * (qos > 0) + len(behind)
        head = write_byte(first_byte) + write_variable_byte_integer(length) + self._topic
        return (head, behind) if qos else (head + behind, b"")
