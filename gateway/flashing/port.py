"""A serial port that nobody else has open."""

import contextlib
import errno
import os
import termios
import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from gateway.flashing.errors import BusyPortError, FlashingError

if TYPE_CHECKING:
    from serial import Serial

BAUD = 115_200
REOPEN_SECONDS = 10.0
"""Seconds in which a USB board is back after a reset."""

RETRY_SECONDS = 0.1

T = TypeVar("T")


def open_port(port: str, timeout: float) -> "Serial":
    """Return the open port, locked against others; raise FlashingError."""
    try:
        from serial import Serial
    except ImportError as error:
        raise FlashingError("pyserial is not installed: pip install 'tidegate[flash]'") from error
    try:
        return Serial(str(Path(port).resolve()), BAUD, timeout=timeout, exclusive=True)
    except (OSError, ValueError, termios.error) as error:
        raise _told(port, error) from error


def retried(action: Callable[[], T], seconds: float = REOPEN_SECONDS) -> T:
    """Return what `action` returns; try again for so many seconds if it raises FlashingError."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        with contextlib.suppress(FlashingError):
            return action()
        time.sleep(RETRY_SECONDS)
    return action()


def _told(port: str, error: Exception) -> FlashingError:
    number = getattr(error, "errno", None)
    if number == errno.EAGAIN:
        return BusyPortError(f"{port}: another program has it open")
    if number == errno.ENOENT:
        return FlashingError(f"{port} is not there: is the board plugged in?")
    if number == errno.EACCES:
        return FlashingError(f"{port}: not allowed for this user: is it in the group dialout?")
    return FlashingError(f"{port}: {os.strerror(number) if number else error}")
