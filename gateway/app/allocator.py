"""Limits the freed memory that the C library keeps, and returns it to the system at intervals."""

import asyncio
import ctypes
import sys

INTERVAL = 60.0
"""Seconds between two calls; memory that is used again has to be mapped again."""

KEPT = 2 * 1024 * 1024
"""Bytes freed at the heap's end that are kept: a turn's buffers are the next turn's."""

MAPPED_FROM = 1024 * 1024
"""Bytes from which on a block is mapped alone and given back when it is freed, a column, say."""

_M_TRIM_THRESHOLD, _M_MMAP_THRESHOLD = -1, -3
"""Parameters of mallopt(3) (malloc.h)."""


def keep_buffers() -> bool:
    """Keep what the buffers of a turn need for the next one; return False without glibc.

    By itself glibc gives back what is free at the heap's end as soon as it is twice the largest
    block that was freed: then each turn maps its buffers anew, a page fault for every 4 KiB that
    come in, which takes four times as long as to pass them on.
    """
    if not sys.platform.startswith("linux"):
        return False
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None)  # musl has none
    if mallopt is None:
        return False
    return all((mallopt(_M_TRIM_THRESHOLD, KEPT), mallopt(_M_MMAP_THRESHOLD, MAPPED_FROM)))


async def give_back_regularly() -> None:
    """Return freed memory to the system now and each `INTERVAL`, until cancelled."""
    while True:
        give_back_freed_memory()
        await asyncio.sleep(INTERVAL)


def give_back_freed_memory() -> bool:
    """Return free pages of the heap to the system; return whether any were, False without glibc.

    As columns grow they leave pieces behind that nothing else needs, up to half as much again as
    they are. It takes a few tenths of a millisecond, two beside a million subscriptions.
    """
    if not sys.platform.startswith("linux"):
        return False
    malloc_trim = getattr(ctypes.CDLL(None), "malloc_trim", None)  # musl has none
    return malloc_trim is not None and malloc_trim(0) == 1
