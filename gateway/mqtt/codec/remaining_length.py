"""The remaining lengths that a client's packets can have (MQTT 5, chapter 3)."""

from gateway.mqtt.codec.fields import VARIABLE_BYTE_INTEGER_LIMIT
from gateway.mqtt.codec.publish import FLAGS
from gateway.mqtt.errors import MalformedPacket
from gateway.mqtt.packets import MQTT_3_1, MQTT_3_1_1, MQTT_5, PacketType

Bounds = tuple[int, int]
"""The minimum and the maximum of a remaining length."""

_ANY = VARIABLE_BYTE_INTEGER_LIMIT

_CONNECT: Bounds = (7, _ANY)  # protocol name and version: whatever follows is answered

_BEFORE_5: dict[int, Bounds] = {
    0x10: _CONNECT,
    **{first_byte: (5 if qos else 3, _ANY) for first_byte, (qos, _, _) in FLAGS.items()},
    0x40: (2, 2),
    0x50: (2, 2),
    0x62: (2, 2),
    0x70: (2, 2),
    0x82: (6, _ANY),
    0xA2: (5, _ANY),
    0xC0: (0, 0),
    0xE0: (0, 0),
}

_IN_5: dict[int, Bounds] = {
    0x10: _CONNECT,
    **{first_byte: (5 if qos else 3, _ANY) for first_byte, (qos, _, _) in FLAGS.items()},
    0x40: (2, _ANY),
    0x50: (2, _ANY),
    0x62: (2, _ANY),
    0x70: (2, _ANY),
    0x82: (3, _ANY),  # without a topic filter: a protocol error, and not malformed
    0xA2: (3, _ANY),
    0xC0: (0, 0),
}

BOUNDS: dict[int, dict[int, Bounds]] = {
    0: {0x10: _CONNECT},
    MQTT_3_1: _BEFORE_5,
    MQTT_3_1_1: _BEFORE_5,
    MQTT_5: _IN_5,
}
"""The bounds by protocol version, 0 before CONNECT, and by first byte.

A packet that is missing here has no bounds, or is not a client's, which the decoder reports.
"""


def check_remaining_length(first_byte: int, length: int, version: int) -> None:
    """Raise MalformedPacket for a remaining length that this packet cannot have."""
    bounds = BOUNDS[version].get(first_byte)
    if bounds is None or bounds[0] <= length <= bounds[1]:
        return
    least, most = bounds
    limit = f"at least {least}" if length < least else f"at most {most}"
    raise MalformedPacket(
        f"{PacketType(first_byte >> 4).name} with a remaining length of {length}; {limit}"
    )
