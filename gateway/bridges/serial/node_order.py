"""A command as a client gives it: JSON on `sensors/<node>/command` (docs/serial-protocol.md)."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from gateway.bridges.serial.command_body import Command
from gateway.bridges.serial.node_install import install_argument
from gateway.clock import Clock

PAYLOAD_MAX = 4096
"""Bytes of a command."""

ID_MAX = 64
"""Characters of a command's id."""

INTERVAL_MIN, INTERVAL_MAX = 0.1, 86_400
"""Seconds between two samples."""

IDENTIFY_SECONDS, IDENTIFY_MAX = 10, 60
"""Seconds for which a board shows itself: by default, and at most."""

UPDATE = "update"
"""The command by which the gateway puts its own version of the program onto the node's board."""

LIMITS: Mapping[Command, tuple[float, float]] = {
    Command.INTERVAL: (INTERVAL_MIN, INTERVAL_MAX),
    Command.IDENTIFY: (1, IDENTIFY_MAX),
}
"""The fewest and most seconds of the commands that take them."""


@dataclass(slots=True)
class Order:
    """A command on its way to a node; `seconds` is its argument, where it has one.

    `command` is None for an update, which the gateway itself carries out.
    """

    command: Command | None
    id: str | int | None = None
    seconds: float = 0
    program: bytes = b""
    """The argument of `install`."""
    quiet: bool = False
    """Whether the gateway itself gives it, and nobody waits for the answer."""
    number: int = 0
    """What the node knows it by; 0 before it was sent."""
    attempts: int = 0

    @property
    def name(self) -> str:
        """What clients call the command."""
        return UPDATE if self.command is None else self.command.name.lower()

    def argument(self, clock: Clock) -> bytes:
        """Return what stands behind the command in its frame."""
        if self.command is Command.INSTALL:
            return self.program
        if self.command is Command.INTERVAL:
            return round(self.seconds * 1000).to_bytes(4, "little")
        if self.command is Command.CLOCK:
            return clock.wall_ms().to_bytes(8, "little")
        return bytes([round(self.seconds)]) if self.command is Command.IDENTIFY else b""


class RefusedOrderError(ValueError):
    """What a client orders is not allowed; `named` is what the answer calls it by."""

    def __init__(self, reason: str, named: Mapping[str, str | int]) -> None:
        super().__init__(reason)
        self.named = named


def parse_order(payload: bytes, node: str) -> Order:
    """Return what a client orders of a node; raise RefusedOrderError with what is wrong."""
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
