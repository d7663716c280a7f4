"""A board's USB port as the node's line; REPL and frames share it."""

import select
import sys

import micropython

from . import const

_CTRL_C = const(3)
_RETURN = const(13)
_NO_INTERRUPT = const(-1)

_READ_MAX = const(512)
"""Bytes taken at once."""


class UsbPort:
    """Takes the port from the REPL, for which a byte 3 of a frame would be Ctrl-C.

    Ctrl-C pressed twice, or a carriage return and Ctrl-C, with which mpremote begins, still end the
    program: behind a frame's end they would begin a frame of version 3, and there is none.
    """

    def __init__(self) -> None:
        self._ready = select.poll()
        self._ready.register(sys.stdin, select.POLLIN)
        self._first = 0
        self._since_end = 0
        micropython.kbd_intr(_NO_INTERRUPT)

    def close(self) -> None:
        """Give the port back to the REPL."""
        micropython.kbd_intr(_CTRL_C)

    def read(self) -> bytes:
        """Return what has arrived; KeyboardInterrupt where somebody wants the REPL."""
        data = bytearray()
        while len(data) < _READ_MAX and self._ready.poll(0):
            byte = sys.stdin.buffer.read(1)
            if not byte:
                break
            data.extend(byte)
            self._check(byte[0])
        return bytes(data)

    def write(self, data: bytes) -> object:
        """Send; the port drops what nobody takes."""
        return sys.stdout.buffer.write(data)

    def _check(self, byte: int) -> None:
        self._since_end = self._since_end + 1 if byte else 0
        if self._since_end == 1:
            self._first = byte
        elif self._since_end == 2 and byte == _CTRL_C and self._first in (_CTRL_C, _RETURN):
            raise KeyboardInterrupt
