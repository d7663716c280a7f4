"""Linux's knowledge of its clock: whether it is synchronized, and its maximum error."""

import ctypes
import sys
from pathlib import Path
from typing import NamedTuple

STA_UNSYNC = 0x0040
"""The status bit of an unsynchronized clock (adjtimex(2))."""

TIME_ERROR = 5
"""The result of adjtimex(2) for such a clock."""

_BOOT_ID = Path("/proc/sys/kernel/random/boot_id")


class Synchronization(NamedTuple):
    """Whether the wall clock is synchronized; `error_ms` bounds its error, None if unknown."""

    synchronized: bool
    error_ms: int | None = None


class _Timeval(ctypes.Structure):
    _fields_ = (("seconds", ctypes.c_long), ("fraction", ctypes.c_long))


class _Timex(ctypes.Structure):
    """`struct timex` of <sys/timex.h>, up to what is read; the rest is space for later fields."""

    _fields_ = (
        ("modes", ctypes.c_uint),
        ("offset", ctypes.c_long),
        ("frequency", ctypes.c_long),
        ("maximum_error", ctypes.c_long),  # microseconds
        ("estimated_error", ctypes.c_long),
        ("status", ctypes.c_int),
        ("constant", ctypes.c_long),
        ("precision", ctypes.c_long),
        ("tolerance", ctypes.c_long),
        ("time", _Timeval),
        ("rest", ctypes.c_byte * 256),
    )


def synchronization() -> Synchronization:
    """Query the kernel, which needs no privilege.

    If that is impossible (another system, a seccomp filter) the answer is "not".
    """
    if not sys.platform.startswith("linux"):
        return Synchronization(synchronized=False)
    state = _Timex()
    answer = ctypes.CDLL(None).adjtimex(ctypes.byref(state))
    return interpret(answer, state.status, state.maximum_error)


def interpret(answer: int, status: int, maximum_error: int) -> Synchronization:
    """Return the meaning of a result of adjtimex; `maximum_error` is in microseconds."""
    if answer < 0 or answer == TIME_ERROR or status & STA_UNSYNC:
        return Synchronization(synchronized=False)
    # rounded up
    return Synchronization(synchronized=True, error_ms=-(-maximum_error // 1000))


def boot_id() -> str:
    """Return the kernel's random name of this boot, "" without one."""
    try:
        return _BOOT_ID.read_text("ascii").strip()
    except OSError:
        return ""
