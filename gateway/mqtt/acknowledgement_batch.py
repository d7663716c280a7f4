"""Adjacent PUBACK, PUBREC, PUBREL or PUBCOMP packets."""

from collections.abc import Sequence
from functools import cache

from gateway.mqtt.codec.packet_codec import encode
from gateway.mqtt.packets import PubAck, PubComp, PubRec, PubRel
from gateway.mqtt.publication import packet_ids
from gateway.mqtt.reason_codes import ReasonCode

SIZE = 4
"""Bytes of an acknowledgement that has only its packet identifier (sections 3.4 to 3.7)."""

LARGEST = 4096
"""Bytes that are searched for one batch; more acknowledgements are handled in several."""

_LENGTH = SIZE - 2  # the remaining length


def acknowledged_by(data: bytes, first_byte: int) -> Sequence[int]:
    """Return the packet identifiers of the acknowledgements at the start of `data`.

    All have this first byte and only their packet identifier; empty if the first packet is another
    one.
    """
    types, lengths = data[0::SIZE], data[1::SIZE]
    count = len(data) // SIZE
    if not (len(types) == count == types.count(first_byte) == lengths.count(_LENGTH)):
        count = min(
            len(types) - len(types.lstrip(bytes((first_byte,)))),
            len(lengths) - len(lengths.lstrip(bytes((_LENGTH,)))),
            count,
        )
        data = data[: count * SIZE]
    return packet_ids(data[2::SIZE], data[3::SIZE]) if count else ()


@cache
def template(
    kind: type[PubAck | PubRec | PubRel | PubComp], code: ReasonCode, version: int
) -> bytes:
    """Return the packet of this kind and code that `acknowledgements` repeats."""
    return encode(kind(0, code), version)


def acknowledgements(packet: bytes, identifiers: Sequence[int]) -> bytearray:
    """Return a copy of `packet` for each identifier, which is at offset 2."""
    size = len(packet)
    data = bytearray(packet * len(identifiers))
    data[2::size] = bytes([packet_id >> 8 for packet_id in identifiers])
    data[3::size] = bytes([packet_id & 0xFF for packet_id in identifiers])
    return data
