"""Attaches a connected socket to its protocol."""

import asyncio
import importlib
import socket
from asyncio import base_events, selector_events, sslproto
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import ssl

TLS_SECONDS = 10.0
"""Maximum seconds for the TLS handshake."""

BeginConnection = Callable[
    [socket.socket, asyncio.Protocol, "ssl.SSLContext | None", str], Awaitable[None]
]
"""Serves the socket, with TLS to the host of this name if there is a context.

Raises OSError, or ValueError for a name that no certificate can have.
"""


def give_asyncio_tls() -> None:
    """Let asyncio use TLS, even if it was imported without (gateway/cli/run.py).

    A gateway that gets its first uplink while it runs was started without TLS.
    """
    import ssl

    if vars(sslproto)["ssl"] is None:
        importlib.reload(sslproto)
        for module in (base_events, selector_events):
            vars(module)["ssl"] = ssl


async def begin_connection(
    sock: socket.socket, protocol: asyncio.Protocol, tls: "ssl.SSLContext | None", host: str
) -> None:
    """Have asyncio serve the socket."""
    if tls is not None:
        give_asyncio_tls()
    await asyncio.get_running_loop().create_connection(
        lambda: protocol,
        sock=sock,
        ssl=tls,
        server_hostname=None if tls is None else host,
        ssl_handshake_timeout=None if tls is None else TLS_SECONDS,
    )
