"""Waiting for programs, which take as long as the machine has other things to do."""

import socket
import time
from collections.abc import Callable

SECONDS = 60.0
"""How long anything may take on a busy machine."""


def until(
    condition: Callable[[], object], what: str = "what is waited for", more: Callable[[], str] = str
) -> None:
    """Return once the condition holds; fail after SECONDS, saying `what` and `more()`."""
    deadline = time.monotonic() + SECONDS
    while not condition():
        assert time.monotonic() < deadline, f"not within {SECONDS:.0f} s: {what}\n{more()}"
        time.sleep(0.02)


def listens(port: int) -> bool:
    """Return whether somebody takes connections there."""
    try:
        socket.create_connection(("127.0.0.1", port), 1).close()
    except OSError:
        return False
    return True
