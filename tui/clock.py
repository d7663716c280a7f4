"""Seconds since 1970 that never step back."""

import time

_CLOCK = getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC)
_START = time.time() - time.clock_gettime(_CLOCK)


def now() -> float:
    """Return the seconds since 1970: the wall clock at the start, and steady from there."""
    return _START + time.clock_gettime(_CLOCK)
