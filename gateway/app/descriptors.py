"""How many connections the operating system lets the gateway hold."""

import resource

RESERVED = 64
"""Descriptors that connections leave for the database, serial ports, the uplink and the rest."""

UNLIMITED = 1_000_000
"""Connections where the operating system sets no limit."""


def raise_limit() -> int:
    """Raise the soft limit of open descriptors to the hard one; return it."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft != hard:
        resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    return hard


def connection_limit() -> int:
    """Return how many network connections there is room for, at least 1."""
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return UNLIMITED if soft == resource.RLIM_INFINITY else max(1, soft - RESERVED)
