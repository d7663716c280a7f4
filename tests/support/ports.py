"""Ports of 127.0.0.1 that stay free until a test's server takes them."""

import fcntl
import os
import socket
import tempfile
from functools import cache
from pathlib import Path
from random import SystemRandom

LOWEST, HIGHEST = 10_000, 65_535

ENOUGH = 1_000
"""Ports of which one can be drawn without trying long."""

_RANGE = Path("/proc/sys/net/ipv4/ip_local_port_range")

_given: set[int] = set()


def free_port() -> int:
    """Return a port on which nothing listens, and which nobody else will be given.

    It is none of those that the kernel hands out by itself: a connection on its way out could
    take one of these between two starts of a server, or even connect to itself. Other runs of
    the tests on this machine know by a lock what is given, for as long as this one runs.
    """
    while True:
        port = SystemRandom().choice(_ports())
        if port not in _given and _lock(port):
            _given.add(port)
            if _is_free(port):
                return port


@cache
def _ports() -> range:
    """Return those below what the kernel hands out, or above; any where both are too few."""
    first, last = map(int, _RANGE.read_text().split())
    for ports in (range(LOWEST, first), range(last + 1, HIGHEST + 1)):
        if len(ports) >= ENOUGH:
            return ports
    return range(LOWEST, HIGHEST + 1)


@cache
def _locks() -> int:
    name = f"tidegate-test-ports-{os.getuid()}"
    return os.open(Path(tempfile.gettempdir(), name), os.O_RDWR | os.O_CREAT, 0o600)


def _lock(port: int) -> bool:
    """Lock the byte that stands for the port; False if another process has."""
    try:
        fcntl.lockf(_locks(), fcntl.LOCK_EX | fcntl.LOCK_NB, 1, port)
    except OSError:
        return False
    return True


def _is_free(port: int) -> bool:
    with socket.socket() as probe:
        try:
            probe.bind(("127.0.0.1", port))
        except OSError:
            return False
    return True
