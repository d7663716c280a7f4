"""Gives back to the system what the C library keeps of freed memory."""

import asyncio
import ctypes
import sys

INTERVAL = 60.0
"""Seconds between two times: what is used again meanwhile has to be mapped again."""


async def give_back_regularly() -> None:
    """Give freed memory back now and each `INTERVAL`, until cancelled."""
    while True:
        give_back_freed_memory()
        await asyncio.sleep(INTERVAL)


def give_back_freed_memory() -> bool:
    """Give every free page of the heap back; return whether any was, False without glibc.

    As columns grow they leave pieces behind that nothing else needs, up to half as much again as
    they are. It takes a few tenths of a millisecond, two beside a million subscriptions. To hold
    glibc to small thresholds with mallopt(3) would give them back too, and make each payload of
    256 KiB 150 µs slower, whose memory would be mapped anew.
    """
    if not sys.platform.startswith("linux"):
        return False
    malloc_trim = getattr(ctypes.CDLL(None), "malloc_trim", None)  # musl has none
    return malloc_trim is not None and malloc_trim(0) == 1
