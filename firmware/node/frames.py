"""Frames of the serial protocol as a node sees them: readings out, answers and orders in.

The bytes are those of docs/understand/serial-protocol.md; every number has its low byte first.
"""

import struct
from binascii import crc32

from . import cobs, const
from .quantities import INSTANCE, NAMED, NO_UNIT, QUANTITIES, UNITS, number_of

VERSION = 1
_READINGS = const(1)
_ACKNOWLEDGEMENT = const(2)

_STORED = const(0)
"""Status: everything in the frame is on the gateway's disk."""
REFUSED = 1
"""Status: something in the frame can never be taken; sending it again would not help."""

_HAS_WALL_TIME = const(1)
"""Flag: eight bytes of wall time follow the head."""
_EARLIER_START = const(2)
"""Flag: sampled before the node's present start."""

_BODY_MAX = const(240)
"""Bytes of a frame before check and stuffing."""
_NODE_MAX = const(64)
"""Bytes of a node's name."""
_QUANTITY_MAX = const(64)
"""Bytes of a quantity that is named in the frame."""
_UNIT_MAX = const(32)
"""Bytes of a unit that is named in the frame."""
_TEXT_MAX = const(32)
"""Bytes of a value that is text."""
_EXPONENT_MAX = const(9)
"""Powers of ten, up and down, by which a decimal's mantissa is moved."""
_HEARD_MAX = const(_BODY_MAX + 5)
"""Bytes of a stuffed frame that a node hears; more without a zero byte are noise."""

_AGE_MAX = const(0xFFFFFFFF)
"""Milliseconds (49 days) that an age can say; an older sample says this."""

_FALSE = const(0)
_TRUE = const(1)
_DECIMAL = const(2)
_INTEGER = const(3)
_FLOAT = const(4)
_TEXT = const(5)
_HEAD = "<BBBIIQII"
_HEAD_BYTES = const(27)
_ACKNOWLEDGEMENT_FIELDS = "<BBBII"
_ACKNOWLEDGEMENT_BYTES = const(11)


def frame(body: bytes) -> bytes:
    """Return `body` as it goes on the wire: checked, stuffed, between two zero bytes."""
    return b"\0" + cobs.encode(body + struct.pack("<I", crc32(body))) + b"\0"


def unframe(stuffed: bytes) -> "bytes | None":
    """Return the body between two zero bytes, or None when it fails the check."""
    try:
        checked = cobs.decode(stuffed)
    except ValueError:
        return None
    body = checked[:-4]
    if len(checked) < 5 or struct.unpack("<I", checked[-4:])[0] != crc32(body):
        return None
    return body


def _text(name: str, limit: int) -> bytes:
    data = name.encode()
    if not 1 <= len(data) <= limit:
        raise ValueError("%r has %d bytes: 1 to %d are allowed" % (name, len(data), limit))
    return bytes([len(data)]) + data


def _number_or_name(name: str, names: str, limit: int) -> bytes:
    number = number_of(name, names)
    return bytes([number]) if number else bytes([NAMED]) + _text(name, limit)


def encode_value(value: "bool | int | float | str | tuple[int, int]") -> bytes:
    """Return a value with its type byte; a pair is (mantissa, exponent of ten)."""
    if value is True or value is False:
        return bytes([_TRUE if value else _FALSE])
    if isinstance(value, str):
        return bytes([_TEXT]) + (_text(value, _TEXT_MAX) if value else b"\0")
    if isinstance(value, float):
        return struct.pack("<Bd", _FLOAT, value)
    if isinstance(value, tuple):
        mantissa, exponent = value
        _check("mantissa", mantissa, -(1 << 31), (1 << 31) - 1)
        _check("exponent", exponent, -_EXPONENT_MAX, _EXPONENT_MAX)
        return struct.pack("<Bbi", _DECIMAL, exponent, mantissa)
    _check("value", value, -(1 << 63), (1 << 63) - 1)
    return struct.pack("<Bq", _INTEGER, value)


def _check(field: str, number: int, lowest: int, highest: int) -> None:
    # MicroPython's struct.pack cuts off what does not fit, and says nothing.
    if not lowest <= number <= highest:
        raise ValueError("%s %d: %d to %d are allowed" % (field, number, lowest, highest))


def encode_reading(
    quantity: str, value: "bool | int | float | str | tuple[int, int]", unit: "str | None" = None
) -> bytes:
    """Return one reading; ValueError when a name or text is empty or too long.

    One of several of a quantity is named `temperature/28ff641e8216`, with its instance.
    """
    quantity, _, instance = quantity.partition("/")
    encoded = bytes([INSTANCE]) + _text(instance, _QUANTITY_MAX) if instance else b""
    encoded += _number_or_name(quantity, QUANTITIES, _QUANTITY_MAX)
    encoded += _number_or_name(unit, UNITS, _UNIT_MAX) if unit else bytes([NO_UNIT])
    return encoded + encode_value(value)


def room(node: str) -> int:
    """Return how many bytes of readings fit into one frame of `node`."""
    return _BODY_MAX - _HEAD_BYTES - 8 - len(_text(node, _NODE_MAX)) - 1


def encode_readings(
    node: str,
    boot: int,
    sequence: int,
    clock: int,
    age: int,
    dropped: int,
    wall: "int | None",
    readings: "list[bytes]",
    earlier: bool = False,
) -> bytes:
    """Return the frame of `readings` (each from `encode_reading`), ready for the wire.

    `clock` is the node's milliseconds since its start at sampling, `age` those since, `wall`
    the milliseconds since 1970 at sampling, where the node knows them. `earlier` is for what was
    sampled before the node's present start; `boot` is that of the sampling.
    """
    flags = (0 if wall is None else _HAS_WALL_TIME) | (_EARLIER_START if earlier else 0)
    head = struct.pack(
        _HEAD, VERSION, _READINGS, flags, boot, sequence, clock, min(age, _AGE_MAX), dropped
    )
    wall_time = b"" if wall is None else struct.pack("<Q", wall)
    body = head + wall_time + _text(node, _NODE_MAX) + bytes([len(readings)]) + b"".join(readings)
    if len(body) > _BODY_MAX:
        raise ValueError("a frame of %d bytes: at most %d are allowed" % (len(body), _BODY_MAX))
    return frame(body)


def decode_acknowledgement(body: bytes) -> "tuple[int, int, int] | None":
    """Return (boot, sequence, status), or None when `body` is no acknowledgement of version 1."""
    if len(body) != _ACKNOWLEDGEMENT_BYTES:
        return None
    version, kind, status, boot, sequence = struct.unpack(_ACKNOWLEDGEMENT_FIELDS, body)
    if version != VERSION or kind != _ACKNOWLEDGEMENT:
        return None
    return boot, sequence, status


class FrameReader:
    """Finds the frames of the gateway in the bytes that arrive, and skips everything else."""

    def __init__(self) -> None:
        self._stuffed = bytearray()

    def feed(self, data: bytes) -> "list[bytes]":
        """Return the body of each frame that `data` completes."""
        found = []
        for byte in data:
            if byte:
                if len(self._stuffed) <= _HEARD_MAX:
                    self._stuffed.append(byte)
                continue
            body = unframe(bytes(self._stuffed))
            self._stuffed = bytearray()
            if body:
                found.append(body)
        return found
