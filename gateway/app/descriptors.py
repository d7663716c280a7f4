"""Limits of the operating system on the number of connections."""

import fcntl
import os
import resource

RESERVED = 64
"""Descriptors that connections leave for the database, serial ports, the uplink and the rest."""

TABLE = 8_192
"""Descriptors that the system's table has room for from the start: 64 KiB of its memory."""

UNLIMITED = 1_000_000
"""Connections where the operating system sets no limit."""


def raise_limit() -> int:
    """Raise the soft limit of open descriptors to the hard one; return it."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft != hard:
        resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    return hard


def reserve_descriptors() -> None:
    """Let the system's table of descriptors grow now, to TABLE or the limit.

    Once there are threads the system stops the one that needs a larger table for 10 to 20 ms each
    time it doubles, in the midst of a fleet that comes back; the table never shrinks.
    """
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    size = TABLE if soft == resource.RLIM_INFINITY else min(TABLE, soft)
    read_end, write_end = os.pipe()
    try:
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
