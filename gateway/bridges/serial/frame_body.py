"""The two bodies of a frame: a node's readings, and the gateway's acknowledgement.

docs/serial-protocol.md, sections "Body: readings" and "Body: acknowledgement".
"""

import struct
from dataclasses import dataclass
from enum import IntEnum

from gateway.bridges.readings.quantities import INSTANCE, NAMED, NO_UNIT, QUANTITIES, UNITS
from gateway.bridges.readings.reading import NAME_MAX, UNIT_MAX, Value

VERSION = 1
READINGS = 1
ACKNOWLEDGEMENT = 2
COMMAND = 3
ANSWER = 4

HAS_WALL_TIME = 0x01
"""Flag: eight bytes of wall time follow the head."""

EARLIER_START = 0x02
"""Flag: sampled in an earlier start of the node, whose boot id the frame has."""

TEXT_MAX = 32
"""Bytes of a value that is text."""

EXPONENT_MAX = 9
"""Powers of ten, up and down, by which a decimal's mantissa is moved."""

_VERSION_AND_TYPE = struct.Struct("<BB")
_HEAD = struct.Struct("<BIIQII")
_ACKNOWLEDGEMENT = struct.Struct("<BBBII")
_DECIMAL = struct.Struct("<bi")


class Status(IntEnum):
    """What an acknowledgement says of its frame."""

    STORED = 0
    REFUSED = 1


class _ValueType(IntEnum):
    FALSE = 0
    TRUE = 1
    DECIMAL = 2
    INTEGER = 3
    FLOAT = 4
    TEXT = 5


class MalformedFrameError(ValueError):
    """A body that passed the check and is not as the protocol says.

    `boot` and `sequence` tell whom to answer; None when the body ended before them.
    """

    def __init__(self, reason: str, boot: int | None = None, sequence: int | None = None) -> None:
        super().__init__(reason)
        self.boot = boot
        self.sequence = sequence


@dataclass(frozen=True, slots=True)
class FrameReading:
    """One reading as it stood in a frame; names are not yet checked."""

    quantity: str
    value: Value
    unit: str | None
    instance: str = ""


@dataclass(frozen=True, slots=True)
class ReadingsFrame:
    """A frame of readings.

    `clock`, `age` and `wall` are milliseconds (since the node's start, since the sampling, since
    1970), `dropped` samples. `unknown` counts readings left out of `readings` because their
    quantity's or unit's number has no meaning here. An `earlier` frame is of a start that is over.
    """

    node: str
    boot: int
    sequence: int
    clock: int
    age: int
    dropped: int
    wall: int | None
    readings: tuple[FrameReading, ...]
    unknown: int
    earlier: bool = False

    def sampled_at(self, now: int) -> int:
        """Return when the sample was taken, ms since 1970, for a frame accepted at `now`."""
        return max(now - self.age, 0) if self.wall is None else self.wall


def encode_acknowledgement(status: Status, boot: int, sequence: int) -> bytes:
    """Return the body that answers a frame."""
    return _ACKNOWLEDGEMENT.pack(VERSION, ACKNOWLEDGEMENT, status, boot, sequence)


def decode_readings(body: bytes) -> ReadingsFrame | None:
    """Return the frame of readings in `body`, or None for what a gateway itself sends.

    It hears its own acknowledgements and commands where both directions share two wires. Raises
    MalformedFrameError for anything else that is not a frame of readings of this version.
    """
    fields = _Fields(body)
    version, frame_type = fields.unpack(_VERSION_AND_TYPE)
    if version != VERSION:
        raise MalformedFrameError(f"version {version}: {VERSION} is spoken here")
    if frame_type in (ACKNOWLEDGEMENT, COMMAND):
        return None
    if frame_type != READINGS:
        raise MalformedFrameError(f"frame type {frame_type} is not known")
    flags, boot, sequence, clock, age, dropped = fields.unpack(_HEAD)
    fields.boot, fields.sequence = boot, sequence
    if flags & ~(HAS_WALL_TIME | EARLIER_START) or sequence == 0:
        raise fields.malformed(f"flags {flags:#04x}, sequence number {sequence}")
    wall = int.from_bytes(fields.take(8), "little") if flags & HAS_WALL_TIME else None
    node = fields.text(1, NAME_MAX)
    count, known = fields.byte(), []
    for _ in range(count):
        reading = _decode_reading(fields)
        if reading is not None:
            known.append(reading)
    if not count or not fields.at_end:
        raise fields.malformed(f"{count} readings in {len(body)} bytes")
    earlier = bool(flags & EARLIER_START)
    return ReadingsFrame(
        *(node, boot, sequence, clock, age, dropped, wall),
        *(tuple(known), count - len(known), earlier),
    )


class _Fields:
    """Takes the fields of a body one after the other."""

    def __init__(self, body: bytes) -> None:
        self._body = body
        self._position = 0
        self.boot: int | None = None
        self.sequence: int | None = None

    @property
    def at_end(self) -> bool:
        return self._position == len(self._body)

    def malformed(self, reason: str) -> MalformedFrameError:
        return MalformedFrameError(reason, self.boot, self.sequence)

    def take(self, size: int) -> bytes:
        end = self._position + size
        if end > len(self._body):
            raise self.malformed(f"the frame ends at byte {len(self._body)}, before byte {end}")
        data = self._body[self._position : end]
        self._position = end
        return data

    def unpack(self, layout: struct.Struct) -> tuple[int, ...]:
        return layout.unpack(self.take(layout.size))

    def byte(self) -> int:
        position = self._position
        if position == len(self._body):
            self.take(1)  # which says what is wrong
        self._position = position + 1
        return self._body[position]

    def text(self, shortest: int, longest: int) -> str:
        size = self.byte()
        if not shortest <= size <= longest:
            raise self.malformed(f"text of {size} bytes: {shortest} to {longest} are allowed")
        try:
            return self.take(size).decode()
        except UnicodeDecodeError as failure:
            raise self.malformed(f"text is not UTF-8: {failure.reason}") from None


def _decode_reading(fields: _Fields) -> FrameReading | None:
    """Return the next reading, None when its quantity or unit has a number not known here."""
    number, instance = fields.byte(), ""
    if number == INSTANCE:
        instance, number = fields.text(1, NAME_MAX), fields.byte()
    quantity = fields.text(1, NAME_MAX) if number == NAMED else QUANTITIES.get(number)
    unit_number = fields.byte()
    unit = fields.text(1, UNIT_MAX) if unit_number == NAMED else UNITS.get(unit_number)
    value = _decode_value(fields)
    if quantity is None or (unit is None and unit_number != NO_UNIT):
        return None
    return FrameReading(quantity, value, unit, instance)


def _decode_value(fields: _Fields) -> Value:
    match fields.byte():
        case _ValueType.FALSE:
            return False
        case _ValueType.TRUE:
            return True
        case _ValueType.DECIMAL:
            return _decode_decimal(fields)
        case _ValueType.INTEGER:
            return int.from_bytes(fields.take(8), "little", signed=True)
        case _ValueType.FLOAT:
            value: float = struct.unpack("<d", fields.take(8))[0]
            return value
        case _ValueType.TEXT:
            return fields.text(0, TEXT_MAX)
        case unknown:
            raise fields.malformed(f"value type {unknown} is not known")


def _decode_decimal(fields: _Fields) -> int | float:
    """Return the number nearest to mantissa times ten to the exponent; whole ones are exact."""
    exponent, mantissa = fields.unpack(_DECIMAL)
    if abs(exponent) > EXPONENT_MAX:
        raise fields.malformed(f"exponent {exponent}: -{EXPONENT_MAX} to {EXPONENT_MAX}")
    return mantissa * 10**exponent if exponent >= 0 else float(f"{mantissa}e{exponent}")
