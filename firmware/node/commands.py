"""What the gateway orders a node to do, each order carried out once."""

import struct

from .frames import VERSION, frame

TYPE_CHECKING = False  # MicroPython has no typing module
if TYPE_CHECKING:
    from typing import Protocol

    class Orders(Protocol):
        """What carries orders out; ValueError for an argument that is not allowed."""

        def read_now(self) -> None:
            """Sample at the next step."""

        def set_interval(self, milliseconds: int) -> None:
            """Sample every so many milliseconds until the node's next start."""

        def set_clock(self, milliseconds: int) -> None:
            """Take the wall clock's milliseconds since 1970."""

        def identify(self, seconds: int) -> None:
            """Show for a while which board this is."""

        def install(self, argument: bytes) -> int:
            """Install a filter program; return the status."""

        def restart(self) -> None:
            """Start anew, soon after the answer has left."""


COMMAND = 3
ANSWER = 4

DONE = 0
"""Status: the command is carried out."""
NOT_ALLOWED = 1
"""Status: an argument is missing or not within its limits."""
NOT_KNOWN = 2
"""Status: this node has no such command."""
OUT_OF_DATE = 3
"""Status: a later command was answered before; its number stands in the answer.

Further ones, of `install` alone, are in node/programs.py."""

READ_NOW, SET_INTERVAL, SET_CLOCK, IDENTIFY, RESTART, INSTALL = range(1, 7)

_HEAD = "<BBIIB"
_HEAD_BYTES = 11
_ANSWER = "<BBBIII"


class Commands:
    """Answers the commands to the node's start `boot`, and has `orders` carry each out once.

    A command that comes again, because its answer was lost, gets that answer again; one that is
    older than the last means nothing any more. So a line that repeats, delays or mixes up what it
    carries changes nothing.
    """

    def __init__(self, boot: int, orders: "Orders") -> None:
        self._boot = boot
        self._orders = orders
        self._last = 0
        self._status = DONE

    def receive(self, body: bytes) -> "bytes | None":
        """Return the frame that answers a body, None where it is no command to this node."""
        if len(body) < _HEAD_BYTES:
            return None
        version, kind, boot, number, command = struct.unpack(_HEAD, body[:_HEAD_BYTES])
        if version != VERSION or kind != COMMAND or boot != self._boot:
            return None
        status = OUT_OF_DATE
        if number > self._last:
            self._last = number
            self._status = self._carry_out(command, body[_HEAD_BYTES:])
        if number == self._last:
            status = self._status
        return frame(struct.pack(_ANSWER, VERSION, ANSWER, status, boot, number, self._last))

    def _carry_out(self, command: int, argument: bytes) -> int:
        orders = self._orders
        number = int.from_bytes(argument, "little")
        try:
            if command == READ_NOW:
                orders.read_now()
            elif command == SET_INTERVAL:
                orders.set_interval(number)
            elif command == SET_CLOCK:
                orders.set_clock(number)
            elif command == IDENTIFY:
                orders.identify(number)
            elif command == RESTART:
                orders.restart()
            elif command == INSTALL:
                return orders.install(argument)
            else:
                return NOT_KNOWN
        except ValueError:
            return NOT_ALLOWED
        return DONE
