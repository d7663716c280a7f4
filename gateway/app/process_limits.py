"""Limits of the process: memory, which is returned when freed, and file descriptors."""

import asyncio
import ctypes
import fcntl
import os
import resource
import sys
from pathlib import Path

SHARE = 4
"""The part of the machine's memory, or of the service's, that is for clients: a quarter."""

LEAST = 64 * 1024 * 1024
MOST = 512 * 1024 * 1024
"""Bounds of that part, in bytes."""

BESIDE = 32 * 1024 * 1024
"""Bytes that the process may occupy beside the limit."""

NOT_COUNTED = 8 * 1024 * 1024
"""Bytes of these for uncounted memory, such as gaps between objects."""

PROC = Path("/proc")
MEMINFO = PROC / "meminfo"
CGROUP = PROC / "self/cgroup"
CGROUPS = Path("/sys/fs/cgroup")


def default_limit(meminfo: Path = MEMINFO, cgroup: Path = CGROUP, cgroups: Path = CGROUPS) -> int:
    """Return a quarter of the available memory, in bytes, within LEAST and MOST.

    `MemoryMax` of the service limits the available memory.
    """
    found = [each for each in (_of_machine(meminfo), *_of_service(cgroup, cgroups)) if each]
    return max(LEAST, min(MOST, min(found, default=0) // SHARE))


def for_clients(limit: int, occupied: int) -> int:
    """Return the bytes for clients in a process that has `occupied` this many.

    So it stays within the limit and BESIDE; but half of the limit is for clients in any case.
    """
    return max(limit // 2, limit - max(0, occupied - (BESIDE - NOT_COUNTED)))


def occupied(process: int | str = "self", proc: Path = PROC) -> int:
    """Return the bytes of memory that a process occupies, 0 if unknown."""
    pages = " ".join(_lines(proc / str(process) / "statm")).split()[1:2]
    return int(pages[0]) * os.sysconf("SC_PAGE_SIZE") if pages else 0


def _of_machine(meminfo: Path) -> int:
    """Return the bytes of memory of this machine, 0 if unknown."""
    for line in _lines(meminfo):
        name, _, value = line.partition(":")
        if name == "MemTotal":
            return int(value.split()[0]) * 1024
    return 0


def _of_service(cgroup: Path, cgroups: Path) -> list[int]:
    """Return the limits of the control groups of this process in bytes, from its own upwards."""
    found = []
    for line in _lines(cgroup):
        hierarchy, _, path = line.partition("::")
        if hierarchy != "0":
            continue  # of version 1, which systemd no longer uses
        folder = cgroups / path.lstrip("/")
        for each in (folder, *folder.parents):
            found += [int(line) for line in _lines(each / "memory.max") if line.isdecimal()]
            if each == cgroups:
                break
    return found


def _lines(path: Path) -> list[str]:
    try:
        return path.read_text(encoding="ascii").splitlines()
    except OSError:
        return []


INTERVAL = 60.0
"""Seconds between two calls; memory that is used again must be mapped again."""

TRIM_THRESHOLD = 2 * 1024 * 1024
"""Bytes freed at the heap's end that stay: a turn's buffers are the next turn's."""

MAPPED_FROM = 1024 * 1024
"""Bytes from which on a block, such as a column, has a mapping of its own, returned when it is
freed."""

_M_TRIM_THRESHOLD, _M_MMAP_THRESHOLD, _M_ARENA_MAX = -1, -3, -8
"""Parameters of mallopt(3) (malloc.h)."""


def set_up_heap() -> bool:
    """Have one heap, which keeps a turn's buffers; return False without glibc.

    By default glibc returns free memory at the heap's end as soon as it is twice the largest block
    that was freed. Then each turn maps its buffers again, a page fault for every 4 KiB of input,
    which takes four times as long as passing it on.

    A heap for each thread would take 0.5 MiB more; no other thread may exist yet.
    """
    if not sys.platform.startswith("linux"):
        return False
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None)  # musl has none
    if mallopt is None:
        return False
    settings = {_M_ARENA_MAX: 1, _M_TRIM_THRESHOLD: TRIM_THRESHOLD, _M_MMAP_THRESHOLD: MAPPED_FROM}
    accepted = [mallopt(name, value) for name, value in settings.items()]
    return all(accepted)


async def give_back_regularly() -> None:
    """Return freed memory to the system now and each `INTERVAL`, until cancelled."""
    while True:
        give_back_freed_memory()
        await asyncio.sleep(INTERVAL)


def give_back_freed_memory() -> bool:
    """Return free pages of the heap to the system; return whether any were, False without glibc.

    As columns grow they leave unused pieces, up to half as much again as they occupy. It takes a
    few tenths of a millisecond, two with a million subscriptions.
    """
    if not sys.platform.startswith("linux"):
        return False
    malloc_trim = getattr(ctypes.CDLL(None), "malloc_trim", None)  # musl has none
    return malloc_trim is not None and malloc_trim(0) == 1


RESERVED = 64
"""Descriptors that are reserved for the database, serial ports, the uplink and the rest."""

TABLE = 8_192
"""Descriptors that fit into the system's table from the start: 64 KiB of its memory."""

UNLIMITED = 1_000_000
"""Connections if the operating system sets no limit."""


def raise_limit() -> int:
    """Raise the soft limit of open descriptors to the hard one; return it."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft != hard:
        resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    return hard


def reserve_descriptors() -> None:
    """Let the system's table of descriptors grow now, to TABLE or the limit.

    Once there are threads, growing it blocks a thread for 10 to 20 ms at each doubling, while a
    whole fleet reconnects; the table never shrinks.
    """
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    size = TABLE if soft == resource.RLIM_INFINITY else min(TABLE, soft)
    read_end, write_end = os.pipe()
    try:
        # the table grows up to the highest descriptor
        os.close(fcntl.fcntl(read_end, fcntl.F_DUPFD_CLOEXEC, size - 1))
    except OSError:  # the last one is in use: the table is large enough
        return
    finally:
        os.close(read_end)
        os.close(write_end)


def connection_limit() -> int:
    """Return the maximum number of network connections, at least 1."""
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return UNLIMITED if soft == resource.RLIM_INFINITY else max(1, soft - RESERVED)
