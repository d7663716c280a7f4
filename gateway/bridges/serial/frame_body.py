"""The bodies of frames: readings and acknowledgements, commands and answers.

docs/understand/serial-protocol.md, the sections that begin with "Body".
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
"""Flag: eight bytes of wall time follow the header."""

EARLIER_START = 0x02
"""Flag: sampled in an earlier start of the node, whose boot id is in the frame."""

TEXT_MAX = 32
"""Bytes of a value that is text."""

EXPONENT_MAX = 9
"""Powers of ten, up and down, by which a decimal's mantissa is scaled."""

_VERSION_AND_TYPE = struct.Struct("<BB")
_HEAD = struct.Struct("<BIIQII")
_ACKNOWLEDGEMENT = struct.Struct("<BBBII")
_DECIMAL = struct.Struct("<bi")
_TIME = struct.Struct("<Q")
_COMMAND = struct.Struct("<BBIIB")
_ANSWER = struct.Struct("<BBBIII")

_HEAD_START = _VERSION_AND_TYPE.size


class Status(IntEnum):
    """The result in an acknowledgement of a frame."""

    STORED = 0
    REFUSED = 1


class _ValueType(IntEnum):
    FALSE = 0
    TRUE = 1
    DECIMAL = 2
    INTEGER = 3
    FLOAT = 4
    TEXT = 5


_NUMBERS: dict[int, struct.Struct] = {
    _ValueType.INTEGER: struct.Struct("<q"),
    _ValueType.FLOAT: struct.Struct("<d"),
}


class MalformedFrameError(ValueError):
    """A body with a valid check that violates the protocol.

    `boot` and `sequence` address the answer; None when the body ended before them.
    """

    def __init__(self, reason: str, boot: int | None = None, sequence: int | None = None) -> None:
        super().__init__(reason)
        self.boot = boot
        self.sequence = sequence


@dataclass(frozen=True, slots=True)
class FrameReading:
    """One reading of a frame; its names are not yet checked."""

    quantity: str
    value: Value
    unit: str | None
    instance: str = ""


@dataclass(frozen=True, slots=True)
class ReadingsFrame:
    """A frame of readings.

    `clock`, `age` and `wall` are milliseconds (since the node's start, since the sampling, since
    1970), `dropped` is a number of samples. `unknown` counts readings left out of `readings`
    because the number of their quantity or unit is unknown. An `earlier` frame is from a previous
    start.
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


def encode_acknowledgement(status: Status, boot: int, sequence: int) -> bytes:
    """Return the body that answers a frame."""
    return _ACKNOWLEDGEMENT.pack(VERSION, ACKNOWLEDGEMENT, status, boot, sequence)


def decode_frame(body: bytes) -> "ReadingsFrame | Answer | None":
    """Return a node's frame, or None for the frames that a gateway sends.

    A gateway receives its own frames where both directions share two wires. Raises
    MalformedFrameError for anything that is no node's frame of this version.
    """
    if len(body) < _HEAD_START:
        raise MalformedFrameError(_cut_off(body))
    version, frame_type = _VERSION_AND_TYPE.unpack_from(body)
    if version != VERSION:
        raise MalformedFrameError(f"version {version}: {VERSION} is spoken here")
    if frame_type == ANSWER:
        return _decode_answer(body)
    if frame_type in (ACKNOWLEDGEMENT, COMMAND):
        return None
    if frame_type != READINGS:
        raise MalformedFrameError(f"frame type {frame_type} is unknown")
    if len(body) < _HEAD_START + _HEAD.size:
        raise MalformedFrameError(_cut_off(body))
    flags, boot, sequence, clock, age, dropped = _HEAD.unpack_from(body, _HEAD_START)
    try:
        return _decode_readings(body, flags, (boot, sequence, clock, age, dropped))
    except (struct.error, IndexError):
        raise MalformedFrameError(_cut_off(body), boot, sequence) from None
    except MalformedFrameError as failure:
        failure.boot, failure.sequence = boot, sequence
        raise


def _cut_off(body: bytes) -> str:
    return f"the frame ends at byte {len(body)}, within a field"


def _decode_readings(
    body: bytes, flags: int, head: tuple[int, int, int, int, int]
) -> ReadingsFrame:
    if flags & ~(HAS_WALL_TIME | EARLIER_START) or head[1] == 0:
        raise MalformedFrameError(f"flags {flags:#04x}, sequence number {head[1]}")
    wall, position = None, _HEAD_START + _HEAD.size
    if flags & HAS_WALL_TIME:
        wall, position = _TIME.unpack_from(body, position)[0], position + _TIME.size
    node, position = _text(body, position, 1, NAME_MAX)
    count, position, known = body[position], position + 1, []
    for _ in range(count):
        reading, position = _decode_reading(body, position)
        if reading is not None:
            known.append(reading)
    if not count or position != len(body):
        raise MalformedFrameError(f"{count} readings in {len(body)} bytes")
    earlier = bool(flags & EARLIER_START)
    return ReadingsFrame(node, *head, wall, tuple(known), count - len(known), earlier)


def _decode_reading(body: bytes, position: int) -> tuple[FrameReading | None, int]:
    """Return the reading at a position, None if the number of its quantity or unit is unknown.

    The second value is the position after it.
    """
    number, instance, position = body[position], "", position + 1
    if number == INSTANCE:
        instance, position = _text(body, position, 1, NAME_MAX)
        number, position = body[position], position + 1
    quantity = QUANTITIES.get(number)
    if number == NAMED:
        quantity, position = _text(body, position, 1, NAME_MAX)
    unit_number, position = body[position], position + 1
    unit = UNITS.get(unit_number)
    if unit_number == NAMED:
        unit, position = _text(body, position, 1, UNIT_MAX)
    value, position = _decode_value(body, position)
    if quantity is None or (unit is None and unit_number != NO_UNIT):
        return None, position
    return FrameReading(quantity, value, unit, instance), position


def _decode_value(body: bytes, position: int) -> tuple[Value, int]:
    """Return the value at a position, and the position after it.

    A decimal is the number nearest to mantissa times ten to the exponent; whole ones are exact.
    """
    kind, position = body[position], position + 1
    if kind == _ValueType.DECIMAL:
        exponent, mantissa = _DECIMAL.unpack_from(body, position)
        if abs(exponent) > EXPONENT_MAX:
            raise MalformedFrameError(f"exponent {exponent}: -{EXPONENT_MAX} to {EXPONENT_MAX}")
        value = mantissa * 10**exponent if exponent >= 0 else float(f"{mantissa}e{exponent}")
        return value, position + _DECIMAL.size
    if kind in (_ValueType.FALSE, _ValueType.TRUE):
        return kind == _ValueType.TRUE, position
    if kind in _NUMBERS:
        return _NUMBERS[kind].unpack_from(body, position)[0], position + 8
    if kind == _ValueType.TEXT:
        return _text(body, position, 0, TEXT_MAX)
    raise MalformedFrameError(f"value type {kind} is unknown")


def _text(body: bytes, position: int, least: int, most: int) -> tuple[str, int]:
    """Return the text at a position, and the position after it."""
    size, start = body[position], position + 1
    if not least <= size <= most:
        raise MalformedFrameError(f"text of {size} bytes: {least} to {most} are allowed")
    if start + size > len(body):
        raise IndexError
    try:
        return body[start : start + size].decode(), start + size
    except UnicodeDecodeError as failure:
        raise MalformedFrameError(f"text is not UTF-8: {failure.reason}") from None


class Command(IntEnum):
    """The commands of a node."""

    READ = 1
    INTERVAL = 2
    CLOCK = 3
    IDENTIFY = 4
    RESTART = 5
    INSTALL = 6


class AnswerStatus(IntEnum):
    """The result of a command at a node."""

    DONE = 0
    NOT_ALLOWED = 1
    NOT_KNOWN = 2
    OUT_OF_DATE = 3
    NOT_VERIFIED = 4
    NOT_NEWER = 5
    NO_SPACE = 6


@dataclass(frozen=True, slots=True)
class Answer:
    """The answer to the command `number` of the start `boot`; `last` is the highest answered."""

    status: AnswerStatus
    boot: int
    number: int
    last: int


def encode_command(boot: int, number: int, command: Command, argument: bytes = b"") -> bytes:
    """Return the body of a command."""
    return _COMMAND.pack(VERSION, COMMAND, boot, number, command) + argument


def _decode_answer(body: bytes) -> Answer:
    try:
        _, _, status, boot, number, last = _ANSWER.unpack(body)
        return Answer(AnswerStatus(status), boot, number, last)
    except (struct.error, ValueError) as failure:
        raise MalformedFrameError(f"answer to a command: {failure}") from None
