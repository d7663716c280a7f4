"""A TCP connection made in a thread of its own, since looking up a name cannot be cancelled."""

import asyncio
import socket
import threading
from collections.abc import Callable

CONNECT_SECONDS = 10.0
"""Maximum seconds for the TCP connection to one address."""


def open_socket(
    host: str, port: int, on_opened: Callable[[socket.socket | None, str], None]
) -> None:
    """Connect; `on_opened` gets the socket, or None and why there is none, on the running loop.

    A thread of the loop's pool would not do: a stop would wait for it. If the loop is closed
    by then, so is the socket.
    """
    arguments = (host, port, asyncio.get_running_loop(), on_opened)
    threading.Thread(target=_open, args=arguments, daemon=True).start()


def _open(
    host: str,
    port: int,
    loop: asyncio.AbstractEventLoop,
    on_opened: Callable[[socket.socket | None, str], None],
) -> None:
    opened: socket.socket | None = None
    error = ""
    try:
        opened = socket.create_connection((host, port), CONNECT_SECONDS)
        opened.settimeout(0)
    except (OSError, ValueError) as reason:  # ValueError: a host name that cannot be encoded
        error = str(reason)
    try:
        loop.call_soon_threadsafe(on_opened, opened, error)
    except RuntimeError:  # the loop has closed meanwhile
        if opened is not None:
            opened.close()
