"""A filter for a node: what a client gives, as the argument of the command `install`."""

from typing import Any

from gateway.bridges.readings.reading import NAME_MAX
from gateway.bridges.serial.serial_frames import BODY_MAX
from gateway.where.language.errors import WhereError
from gateway.where.node.node_program import ProgramLimitError, encode_program
from gateway.where.node.push_down import push_down
from gateway.where.rule import compile_rule

VERSION_MAX = 2**32 - 1
"""The highest version of a program."""

GUARD_MAX = 86_400
"""Seconds between two readings that are sent unfiltered."""

GUARD_SECONDS = 3600
"""The same where the client does not say."""

ARGUMENT_MAX = BODY_MAX - 11
"""Bytes of the argument: a frame holds the command's head besides."""


def install_argument(fields: dict[str, Any], node: str) -> bytes:
    """Return the argument for the fields of an order, which are taken out; raise ValueError."""
    quantity = fields.pop("quantity", None)
    if not isinstance(quantity, str) or not 1 <= len(quantity.encode()) <= NAME_MAX:
        raise ValueError(f"quantity: a text of 1 to {NAME_MAX} bytes must be given")
    version = _whole("version", fields.pop("version", None), 1, VERSION_MAX)
    guard = _whole("guard", fields.pop("guard", GUARD_SECONDS), 0, GUARD_MAX)
    program = _program(fields, f"sensors/{node}/{quantity}")
    name = quantity.encode()
    head = version.to_bytes(4, "little") + guard.to_bytes(4, "little") + bytes([len(name)])
    argument = head + name + program
    if len(argument) > ARGUMENT_MAX:
        raise ValueError(f"a program of {len(argument)} bytes: at most {ARGUMENT_MAX} fit a frame")
    return argument


def _whole(name: str, value: object, lowest: int, highest: int) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or not lowest <= value <= highest:
        raise ValueError(f"{name} {value!r}: a whole number, {lowest} to {highest}")
    return value


def _program(fields: dict[str, Any], topic: str) -> bytes:
    if ("where" in fields) == ("program" in fields):
        raise ValueError("where (an expression) or program (hexadecimal digits) must be given")
    if "program" in fields:
        return _hexadecimal(fields.pop("program"))
    return _compiled(fields.pop("where"), topic)


def _hexadecimal(digits: object) -> bytes:
    try:
        return bytes.fromhex(str(digits))
    except ValueError:
        raise ValueError("program: hexadecimal digits are expected") from None


def _compiled(where: object, topic: str) -> bytes:
    """Return what a node can decide of an expression; no bytes for one that is always TRUE."""
    if not isinstance(where, str):
        raise ValueError("where: an expression is expected")  # noqa: TRY004 - one error for all
    try:
        split = push_down(compile_rule(where).expression, topic)
        if split.node is not None:
            return encode_program(split.node)
    except (WhereError, ProgramLimitError) as failure:
        raise ValueError(f"where: {failure}") from None
    if split.residual is not None:
        raise ValueError("where: a node can decide nothing of it")
    return b""
