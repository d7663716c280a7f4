"""A client's command: JSON on `sensors/<node>/command` (docs/understand/serial-protocol.md)."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from gateway.bridges.readings.reading import NAME_MAX
from gateway.bridges.serial.frame_body import Command
from gateway.bridges.serial.serial_frames import BODY_MAX
from gateway.clock import Clock
from gateway.where.language.errors import WhereError
from gateway.where.node.node_program import ProgramLimitError, encode_program
from gateway.where.node.push_down import push_down
from gateway.where.rule import compile_rule

PAYLOAD_MAX = 4096
"""Bytes of a command."""

ID_MAX = 64
"""Characters of a command's id."""

INTERVAL_MIN, INTERVAL_MAX = 0.1, 86_400
"""Seconds between two samples."""

IDENTIFY_SECONDS, IDENTIFY_MAX = 10, 60
"""Seconds for which a board identifies itself: by default, and at most."""

UPDATE = "update"
"""The command that installs the gateway's version of the program on the node's board."""

LIMITS: Mapping[Command, tuple[float, float]] = {
    Command.INTERVAL: (INTERVAL_MIN, INTERVAL_MAX),
    Command.IDENTIFY: (1, IDENTIFY_MAX),
}
"""The fewest and most seconds of the commands with this argument."""


@dataclass(slots=True)
class Order:
    """A pending command to a node; `seconds` is its argument, if it has one.

    `command` is None for an update, which the gateway itself carries out.
    """

    command: Command | None
    id: str | int | None = None
    seconds: float = 0
    program: bytes = b""
    """The argument of `install`."""
    quiet: bool = False
    """Whether the gateway itself sends it, and nobody waits for the answer."""
    number: int = 0
    """Its number at the node; 0 before it was sent."""
    attempts: int = 0

    @property
    def name(self) -> str:
        """The clients' name of the command."""
        return UPDATE if self.command is None else self.command.name.lower()

    def argument(self, clock: Clock) -> bytes:
        """Return the command's argument as it is in a frame."""
        if self.command is Command.INSTALL:
            return self.program
        if self.command is Command.INTERVAL:
            return round(self.seconds * 1000).to_bytes(4, "little")
        if self.command is Command.CLOCK:
            return clock.wall_ms().to_bytes(8, "little")
        return bytes([round(self.seconds)]) if self.command is Command.IDENTIFY else b""


class RefusedOrderError(ValueError):
    """A client's command that is not allowed; `named` is its name in the answer."""

    def __init__(self, reason: str, named: Mapping[str, str | int]) -> None:
        super().__init__(reason)
        self.named = named


def parse_order(payload: bytes, node: str) -> Order:
    """Return a client's command to a node; raise RefusedOrderError with what is wrong."""
    named: dict[str, str | int] = {}
    try:
        fields = _fields(payload)
        given = _id(fields.pop("id", None))
        if given is not None:
            named["id"] = given
        return _order(fields, given, named, node)
    except ValueError as failure:
        raise RefusedOrderError(str(failure), named) from failure


def _fields(payload: bytes) -> dict[str, Any]:
    if len(payload) > PAYLOAD_MAX:
        raise ValueError(f"{len(payload)} bytes: at most {PAYLOAD_MAX} are allowed")
    try:
        fields = json.loads(payload)
    except (ValueError, RecursionError):
        fields = None
    if not isinstance(fields, dict):
        raise ValueError('a JSON object such as {"command":"read"} is expected')  # noqa: TRY004 - one error for all
    return fields


def _order(
    fields: dict[str, Any], given: str | int | None, named: dict[str, str | int], node: str
) -> Order:
    names = [*(each.name.lower() for each in Command), UPDATE]
    name = fields.pop("command", None)
    if name not in names:
        raise ValueError(f"command {name!r}: there are {', '.join(names)}")
    named["command"] = name
    order = Order(None if name == UPDATE else Command[name.upper()], given)
    if order.command is not None and order.command in LIMITS:
        order.seconds = _seconds(order.command, fields.pop("seconds", None))
    if order.command is Command.INSTALL:
        order.program = install_argument(fields, node)
    if fields:
        raise ValueError(f"{', '.join(fields)}: not known of {name}")
    return order


def _id(value: object) -> str | int | None:
    if isinstance(value, str) and len(value) > ID_MAX:
        raise ValueError(f"id: at most {ID_MAX} characters are allowed")
    if value is None or (isinstance(value, str | int) and not isinstance(value, bool)):
        return value
    raise ValueError("id: a text or a whole number is expected")


def _seconds(command: Command, value: object) -> float:
    lowest, highest = LIMITS[command]
    if value is None and command is Command.IDENTIFY:
        return IDENTIFY_SECONDS
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise ValueError("seconds: a number must be given")  # noqa: TRY004 - one error for all
    if not lowest <= value <= highest:
        raise ValueError(f"seconds {value}: {lowest:g} to {highest:g} are allowed")
    return value


VERSION_MAX = 2**32 - 1
"""The highest version of a program."""

GUARD_MAX = 86_400
"""Seconds between two readings that are sent unfiltered."""

GUARD_SECONDS = 3600
"""The same where the client gives none."""

ARGUMENT_MAX = BODY_MAX - 11
"""Bytes of the argument: the frame also holds the command's head."""


def install_argument(fields: dict[str, Any], node: str) -> bytes:
    """Remove the fields of an order, and return the argument from them; raise ValueError."""
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
    """Return an expression as a node can evaluate it; no bytes for one that is always TRUE."""
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
