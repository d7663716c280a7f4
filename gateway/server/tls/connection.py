"""TLS between a socket and its protocol."""

import asyncio
import logging
import ssl
from collections.abc import Callable
from contextlib import suppress
from typing import Any, cast

from gateway.counters import Counters
from gateway.server.transport import CLOSE_TIMEOUT, peer_name

logger = logging.getLogger(__name__)

READ_BYTES = 17 * 1024
"""Bytes of one read: a whole TLS record."""

RECORD_BYTES = 16 * 1024
"""Bytes of a record; the inner protocol gets at most twice as many at a time."""

MAXIMUM_HANDSHAKE = 64 * 1024
"""Bytes that a peer may send before the handshake ends: certificates have a few thousand."""


class TlsConnection(asyncio.Protocol, asyncio.Transport):
    """The protocol of a socket and the transport of the inner protocol, with OpenSSL in between.

    `create_server(ssl=...)` does not report failed handshakes, and reserves 256 KiB for each
    connection: a small board's memory for 2,000 clients. Here, bytes are passed to OpenSSL before
    more are read. Output is encrypted at once, so only the socket's transport has unsent data.
    """

    __slots__ = (
        "_closing",
        "_counters",
        "_eof",
        "_error",
        "_incoming",
        "_inner",
        "_on_handshake_over",
        "_outgoing",
        "_paused",
        "_peer",
        "_read",
        "_shaking_hands",
        "_timeout",
        "_timer",
        "_tls",
        "_transport",
    )

    def __init__(
        self,
        inner: asyncio.Protocol,
        context: ssl.SSLContext,
        handshake_timeout: int,
        counters: Counters,
        on_handshake_over: Callable[["TlsConnection"], None],
    ) -> None:
        super().__init__()
        self._inner = inner
        self._counters = counters
        self._on_handshake_over = on_handshake_over
        self._timeout = handshake_timeout
        self._incoming, self._outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
        self._tls = context.wrap_bio(self._incoming, self._outgoing, server_side=True)
        self._transport: asyncio.Transport | None = None
        self._timer: asyncio.TimerHandle | None = None
        self._peer = "unknown"
        self._shaking_hands = True
        self._read = 0  # bytes before the handshake ends
        self._paused = False  # the inner protocol has paused
        self._eof = False  # the peer's socket has ended, with or without a TLS close
        self._closing = False
        self._error: Exception | None = None

    # Called by the socket's transport.

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Begin the handshake."""
        self._transport = cast("asyncio.Transport", transport)
        self._transport.max_size = READ_BYTES  # type: ignore[attr-defined]  # asyncio's name, too
        self._peer = peer_name(transport)
        loop = asyncio.get_running_loop()
        reason = f"no handshake within {self._timeout} s"
        self._timer = loop.call_later(self._timeout, self._refuse, reason)

    def data_received(self, data: bytes) -> None:
        """Process received bytes."""
        if self._closing:
            return  # our close is not read by the peer yet
        self._incoming.write(data)
        if self._shaking_hands:
            self._read += len(data)
            self._shake_hands()
        else:
            self._pass_on()

    def eof_received(self) -> bool:
        """Pass on what came before the end; return True: this class closes the socket."""
        self._eof = True
        if self._shaking_hands:
            self.abort()
        elif self._closing:
            self._close_socket()
        else:
            self._pass_on()
        return True

    def connection_lost(self, error: Exception | None) -> None:
        """End the inner protocol, also if the handshake was never finished."""
        if (
            self._shaking_hands
            and error is not None
            and not isinstance(error, ConnectionResetError)
        ):
            self._note(str(error))  # a peer that disconnects, as a port probe does, is routine
        self._end_handshake()
        self._transport = None
        self._closing = True
        self._inner.connection_lost(self._error or error)

    def pause_writing(self) -> None:
        """Tell the inner protocol that the peer reads too slowly."""
        self._inner.pause_writing()

    def resume_writing(self) -> None:
        """Tell the inner protocol that it may write again."""
        self._inner.resume_writing()

    # Called by the inner protocol.

    def write(self, data: bytes | bytearray | memoryview) -> None:
        """Encrypt and send the bytes; nothing once the connection ends."""
        if self._closing or self._transport is None or not data:
            return
        records = []
        rest = memoryview(data)
        try:
            while rest:  # OpenSSL encrypts a record at a time
                rest = rest[self._tls.write(rest) :]
                records.append(self._outgoing.read())
        except ssl.SSLError as error:
            self._fail(error)
            return
        self._transport.write(records[0] if len(records) == 1 else b"".join(records))

    def can_write_eof(self) -> bool:
        """Return False: TLS has no half-close that its peers understand."""
        return False

    def close(self) -> None:
        """Send the TLS close, and close the socket after the peer's."""
        if self._closing or self._transport is None:
            return
        self._closing = True
        # the peer has not sent its close yet, or sends more data first
        with suppress(ssl.SSLError):
            self._tls.unwrap()
        self._send()
        if self._eof:
            self._close_socket()
            return
        self._transport.resume_reading()  # otherwise the peer's end is not seen
        self._timer = asyncio.get_running_loop().call_later(CLOSE_TIMEOUT, self.abort)

    def abort(self) -> None:
        """Close the socket now."""
        if self._transport is not None:
            self._transport.abort()

    def is_closing(self) -> bool:
        """Return whether nothing can be written any more."""
        return self._closing or self._transport is None or self._transport.is_closing()

    def pause_reading(self) -> None:
        """Stop reading from the socket and passing data on."""
        self._paused = True
        if self._transport is not None and not self._closing:
            self._transport.pause_reading()

    def resume_reading(self) -> None:
        """Pass received data to the inner protocol again."""
        if not self._paused:
            return
        self._paused = False
        if self._transport is not None:
            self._transport.resume_reading()
            # later, because a method of the inner protocol is still running
            asyncio.get_running_loop().call_soon(self._pass_on)

    def set_write_buffer_limits(self, high: int | None = None, low: int | None = None) -> None:
        """Set how many encrypted bytes may wait for the socket."""
        if self._transport is not None:
            self._transport.set_write_buffer_limits(high, low)

    def get_write_buffer_size(self) -> int:
        """Return how many encrypted bytes wait for the socket."""
        return 0 if self._transport is None else self._transport.get_write_buffer_size()

    def get_extra_info(self, name: str, default: Any = None) -> Any:
        """Return `peercert`, or the socket's information."""
        if name == "peercert":
            return self._tls.getpeercert()
        return default if self._transport is None else self._transport.get_extra_info(name, default)

    # Used by both.

    def _shake_hands(self) -> None:
        try:
            self._tls.do_handshake()
        except ssl.SSLWantReadError:
            if self._read > MAXIMUM_HANDSHAKE:
                self._refuse(f"a handshake of more than {MAXIMUM_HANDSHAKE} bytes")
            else:
                self._send()
            return
        except ssl.SSLError as error:
            self._send()  # an alert with the reason
            self._refuse(str(error))
            return
        self._end_handshake()
        self._send()
        self._inner.connection_made(self)
        self._pass_on()  # what followed the handshake

    def _pass_on(self) -> None:
        """Decrypt data for the inner protocol, until it pauses."""
        try:
            while not (self._paused or self._closing):
                data = self._decrypted()
                if not data:
                    if data is not None or self._eof:
                        self._inner.eof_received()
                        self.close()
                    break
                self._inner.data_received(data)
        except ssl.SSLError as error:
            self._fail(error)

    def _decrypted(self) -> bytes | None:
        """Return decrypted data, b"" after the peer's close, None without a whole record.

        Small records are joined: each call of the inner protocol has its cost.
        """
        records: list[bytes] = []
        try:
            while record := self._tls.read(RECORD_BYTES):
                records.append(record)
        except ssl.SSLWantReadError:
            if not records:
                return None
        return b"".join(records)

    def _send(self) -> None:
        if self._transport is not None and self._outgoing.pending:
            self._transport.write(self._outgoing.read())

    def _refuse(self, reason: str) -> None:
        """End a connection before its handshake is finished."""
        self._note(reason)
        self._end_handshake()
        self._closing = True
        self.abort()

    def _note(self, reason: str) -> None:
        self._counters.add("tidegate/connections/tls_refused")
        logger.info("no TLS with %s: %s", self._peer, reason)

    def _end_handshake(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        if self._shaking_hands:
            self._shaking_hands = False
            self._on_handshake_over(self)

    def _fail(self, error: Exception) -> None:
        """End a connection with invalid records."""
        self._error = error
        self._send()  # an alert
        self.abort()

    def _close_socket(self) -> None:
        if self._transport is not None:
            self._transport.close()
