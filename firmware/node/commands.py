"""What the gateway orders a node to do, each order carried out once."""

import struct

from . import const
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


_COMMAND = const(3)
_ANSWER = const(4)

_DONE = const(0)
"""Status: the command is carried out."""
NOT_ALLOWED = 1
"""Status: an argument is missing or not within its limits."""
_NOT_KNOWN = const(2)
"""Status: this node has no such command."""
_OUT_OF_DATE = const(3)
"""Status: a later command was answered before; its number stands in the answer.

Further ones, only of `install`, are in node/programs.py."""

_READ_NOW = const(1)
_SET_INTERVAL = const(2)
_SET_CLOCK = const(3)
_IDENTIFY = const(4)
_RESTART = const(5)
_INSTALL = const(6)

_HEAD = "<BBIIB"
_HEAD_BYTES = const(11)
_ANSWER_FIELDS = "<BBBIII"


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
        self._status = _DONE

    def receive(self, body: bytes) -> "bytes | None":
        """Return the frame that answers a body, None where it is no command to this node."""
        if len(body) < _HEAD_BYTES:
            return None
        version, kind, boot, number, command = struct.unpack(_HEAD, body[:_HEAD_BYTES])
        if version != VERSION or kind != _COMMAND or boot != self._boot:
            return None
        status = _OUT_OF_DATE
        if number > self._last:
            self._last = number
            self._status = self._carry_out(command, body[_HEAD_BYTES:])
        if number == self._last:
            status = self._status
        return frame(
            struct.pack(_ANSWER_FIELDS, VERSION, _ANSWER, status, boot, number, self._last)
        )

    def _carry_out(self, command: int, argument: bytes) -> int:
        orders = self._orders
        number = int.from_bytes(argument, "little")
        try:
            if command == _READ_NOW:
                orders.read_now()
            elif command == _SET_INTERVAL:
                orders.set_interval(number)
            elif command == _SET_CLOCK:
                orders.set_clock(number)
            elif command == _IDENTIFY:
                orders.identify(number)
            elif command == _RESTART:
                orders.restart()
            elif command == _INSTALL:
                return orders.install(argument)
            else:
                return _NOT_KNOWN
        except ValueError:
            return NOT_ALLOWED
        return _DONE
