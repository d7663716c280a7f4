"""TLS between a socket and what speaks through it."""

import asyncio
import logging
import ssl
from asyncio.sslproto import SSLProtocol
from collections.abc import Callable
from typing import ClassVar, cast

from gateway.counters import Counters
from gateway.server.peer import peer_name
from gateway.server.transport import CLOSE_TIMEOUT

logger = logging.getLogger(__name__)

BUFFER_BYTES = 17 * 1024
"""Bytes that are read at a time: a whole TLS record."""

MAXIMUM_HANDSHAKE = 64 * 1024
"""Bytes that a peer may send before the handshake is over: certificates have a few thousand."""

_BUFFER = bytearray(BUFFER_BYTES)
_VIEW = memoryview(_BUFFER)


class TlsConnection(SSLProtocol):
    """asyncio's TLS as a protocol of its own, so that a connection can be judged before it.

    `create_server(ssl=...)` tells nobody of a handshake that fails, and reserves 256 KiB for each
    connection: a small board's memory for 2,000 clients. Here one buffer serves all of them, since
    what was read into it is handed to OpenSSL before anything else is read.
    """

    max_size: ClassVar[int] = BUFFER_BYTES

    def __init__(
        self,
        inner: asyncio.Protocol,
        context: ssl.SSLContext,
        handshake_timeout: int,
        counters: Counters,
        on_handshake_over: Callable[["TlsConnection"], None],
    ) -> None:
        loop = asyncio.get_running_loop()
        self._inner = inner
        self._counters = counters
        self._on_handshake_over = on_handshake_over
        self._peer = "unknown"
        self._read = 0  # bytes before the handshake is over
        self._socket_transport: asyncio.Transport | None = None
        self._handshake: asyncio.Future[None] = loop.create_future()
        self._handshake.add_done_callback(self._note_handshake)
        super().__init__(
            loop,
            inner,
            context,
            self._handshake,
            server_side=True,
            ssl_handshake_timeout=handshake_timeout,
            ssl_shutdown_timeout=CLOSE_TIMEOUT,
        )
        self._ssl_buffer, self._ssl_buffer_view = _BUFFER, _VIEW  # asyncio's names

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Begin the handshake."""
        self._peer = peer_name(transport)
        self._socket_transport = cast("asyncio.Transport", transport)
        super().connection_made(transport)

    def buffer_updated(self, nbytes: int) -> None:
        """Go on with what was read, unless it is more than any handshake has."""
        if not self._handshake.done():
            self._read += nbytes
            if self._read > MAXIMUM_HANDSHAKE:
                self._counters.add("tidegate/connections/tls_refused")
                logger.info(
                    "no TLS with %s: a handshake of more than %d bytes",
                    self._peer,
                    MAXIMUM_HANDSHAKE,
                )
                self.abort()
                return
        super().buffer_updated(nbytes)

    def connection_lost(self, error: BaseException | None) -> None:
        """Tell the inner protocol, also if the handshake was never finished."""
        unfinished = not self._handshake.done() or self._handshake.exception() is not None
        super().connection_lost(error)
        self._socket_transport = None
        if unfinished:
            self._inner.connection_lost(None)

    def abort(self) -> None:
        """Close the socket now."""
        if self._socket_transport is not None:
            self._socket_transport.abort()

    def _note_handshake(self, handshake: "asyncio.Future[None]") -> None:
        self._on_handshake_over(self)
        error = handshake.exception()
        # a peer that goes, as a probe of the port does, is no news
        if error is not None and not isinstance(error, ConnectionResetError):
            self._counters.add("tidegate/connections/tls_refused")
            logger.info("no TLS with %s: %s", self._peer, error)
