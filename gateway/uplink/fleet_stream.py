"""The bytes of one network connection: gathered until they are wanted, written together."""

import asyncio
import socket
from collections.abc import Callable

from gateway.uplink.traffic import bytes_carried

READ_BYTES = 64 * 1024
"""Bytes that one read takes at most."""

MAX_RECEIVED_BYTES = 1024 * 1024
"""Bytes received and not taken, beyond which nothing is read for a while."""


class FleetStream(asyncio.BufferedProtocol):
    """A protocol that decides nothing: what came, and the end, wait for who was woken.

    Packets given to `write` leave in their order with the next `flush`, in one system call.
    """

    def __init__(self, sock: socket.socket, wake: Callable[[], None]) -> None:
        self.lost: str | None = None
        """Why the connection is at its end, None while it is not."""
        self._socket = sock
        self._wake = wake
        self._loop = asyncio.get_running_loop()
        self._transport: asyncio.Transport | None = None
        self._ended = asyncio.Event()
        self._buffer = memoryview(bytearray(READ_BYTES))
        self._received: list[bytes] = []
        self._received_bytes = 0
        self._paused = False
        self._waiting: list[bytes] = []
        self._carried = 0

    @property
    def bytes_carried(self) -> int:
        """Bytes that the connection has carried both ways so far, or had when it ended."""
        self._carried = max(self._carried, bytes_carried(self._socket))
        return self._carried

    @property
    def blocked(self) -> bool:
        """Whether something waits that the network does not take."""
        return self._transport is not None and self._transport.get_write_buffer_size() > 0

    def take(self) -> list[bytes]:
        """Return what came since the last call."""
        received, self._received = self._received, []
        self._received_bytes = 0
        if self._paused and self._transport is not None and self.lost is None:
            self._paused = False
            self._transport.resume_reading()
        return received

    def write(self, data: bytes) -> None:
        """Add a packet to those that leave with the next `flush`."""
        self._waiting.append(data)

    def flush(self) -> bool:
        """Send all that waits; return whether there was anything."""
        if not self._waiting or self._transport is None:
            return False
        data = b"".join(self._waiting)
        self._waiting.clear()
        if self.lost is None:
            self._transport.write(data)
        return True

    async def end(self) -> None:
        """End the connection at once; return when its socket is closed, or about to be."""
        if self._transport is None:
            self._socket.close()
            return
        self._carried = self.bytes_carried
        self._transport.abort()
        await self._ended.wait()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Take the transport, as asyncio does it."""
        assert isinstance(transport, asyncio.Transport)  # noqa: S101 - asyncio promises it
        self._transport = transport
        self._wake()

    def get_buffer(self, sizehint: int) -> memoryview:
        """Give asyncio room for what comes."""
        del sizehint
        return self._buffer

    def buffer_updated(self, nbytes: int) -> None:
        """Keep what came."""
        self._received.append(bytes(self._buffer[:nbytes]))
        self._received_bytes += nbytes
        if self._received_bytes > MAX_RECEIVED_BYTES and self._transport is not None:
            self._paused = True
            self._transport.pause_reading()
        self._wake()

    def eof_received(self) -> bool:
        """Note that the server has closed its side; ours is of no use then."""
        self._carried = self.bytes_carried
        self._lose("the server closed it")
        return False

    def connection_lost(self, error: Exception | None) -> None:
        """Note the end."""
        self._carried = self.bytes_carried
        self._lose(str(error) if error is not None else "closed")
        self._ended.set()

    def _lose(self, reason: str) -> None:
        self.lost = self.lost or reason
        self._wake()
