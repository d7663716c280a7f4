"""A serial port for exclusive use."""

import contextlib
import errno
import os
import termios
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from gateway.extras import how_to_install
from gateway.flashing.errors import BusyPortError, FlashingError, MissingPortError

if TYPE_CHECKING:
    from serial import Serial

BAUD = 115_200
REOPEN_SECONDS = 10.0
"""Seconds within which a USB board is back after a reset."""

APPEAR_SECONDS = 2.0
"""Seconds within which a port may come back after a reset by another command."""

YIELD_SECONDS = 5.0
"""Seconds within which a gateway releases its port on request."""

RETRY_SECONDS = 0.1

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Port:
    """The path of a port, and how to borrow it from a gateway that has it open."""

    path: str
    borrow: Callable[[], None] | None = None

    def __str__(self) -> str:
        return self.path

    @property
    def device(self) -> str:
        """The path with links resolved."""
        return str(Path(self.path).resolve())


def open_port(port: Port, timeout: float) -> "Serial":
    """Return the open port, locked against others; raise FlashingError.

    A gateway that has it open is asked to release it.
    """
    try:
        return _open(port, timeout)
    except MissingPortError:
        return retried(lambda: _open(port, timeout), APPEAR_SECONDS)
    except BusyPortError:
        if port.borrow is None:
            raise
    port.borrow()
    return retried(lambda: _open(port, timeout), YIELD_SECONDS)


def _open(port: Port, timeout: float) -> "Serial":
    try:
        from serial import Serial
    except ImportError as error:
        raise FlashingError(f"pyserial is not installed: {how_to_install('serial')}") from error
    try:
        return Serial(port.device, BAUD, timeout=timeout, exclusive=True)
    except (OSError, ValueError, termios.error) as error:
        raise _explained(port, error) from error


def retried(action: Callable[[], T], seconds: float = REOPEN_SECONDS) -> T:
    """Return the result of `action`; retry for so many seconds if it raises FlashingError."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        with contextlib.suppress(FlashingError):
            return action()
        time.sleep(RETRY_SECONDS)
    return action()


def _explained(port: Port, error: Exception) -> FlashingError:
    number = getattr(error, "errno", None)
    if number == errno.EAGAIN:
        return BusyPortError(f"{port}: another program has it open")
    if number == errno.ENOENT:
        return MissingPortError(f"{port} is not there: is the board plugged in?")
    if number == errno.EACCES:
        return FlashingError(f"{port}: not allowed for this user: is it in the group dialout?")
    return FlashingError(f"{port}: {os.strerror(number) if number else error}")
