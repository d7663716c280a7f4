"""The bytes of one network connection: received ones are handled, sent ones written at once."""

import asyncio
import socket
from collections.abc import Callable
from typing import cast

from gateway.uplink.errors import End
from gateway.uplink.fleet.traffic import bytes_carried


class FleetStream(asyncio.Protocol):
    """A protocol that gives received bytes to `on_data`; its end waits until somebody asks.

    Packets given to `write` leave in their order with the next `flush`, in one system call.
    """

    def __init__(
        self, sock: socket.socket, wake: Callable[[], None], on_data: Callable[[bytes], None]
    ) -> None:
        self.lost: str | None = None
        """Why the connection ended, None while it is open."""
        self.end_kind = End.CLOSED
        self._socket = sock
        self._wake = wake
        self._on_data = on_data
        self._loop = asyncio.get_running_loop()
        self._transport: asyncio.Transport | None = None
        self._ended = asyncio.Event()
        self._waiting: list[bytes] = []
        self._carried = 0

    @property
    def bytes_carried(self) -> int:
        """Bytes sent and received so far, or until the end of the connection."""
        self._carried = max(self._carried, bytes_carried(self._socket))
        return self._carried

    @property
    def blocked(self) -> bool:
        """Whether bytes wait because the peer does not read."""
        return self._transport is not None and self._transport.get_write_buffer_size() > 0

    def write(self, data: bytes) -> None:
        """Queue a packet for the next `flush`."""
        self._waiting.append(data)

    def flush(self) -> bool:
        """Send all queued packets; return whether there were any."""
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
        """Keep the transport."""
        self._transport = cast("asyncio.Transport", transport)  # or what has its methods
        self._transport.set_write_buffer_limits(0)
        self._wake()

    def resume_writing(self) -> None:
        """Wake whoever waits for what was written to leave."""
        self._wake()

    def data_received(self, data: bytes) -> None:
        """Handle the received bytes."""
        self._on_data(data)

    def eof_received(self) -> bool:
        """Record that the server has closed its side, which ends the connection."""
        self._carried = self.bytes_carried
        self._lose("")
        return False

    def connection_lost(self, error: Exception | None) -> None:
        """Record why the connection ended."""
        self._carried = self.bytes_carried
        if error is not None and self.lost is None:
            self.end_kind = End.RESET if isinstance(error, ConnectionError) else End.LOST
        self._lose(str(error or ""))
        self._ended.set()

    def _lose(self, reason: str) -> None:
        if self.lost is None:
            self.lost = reason
        self._wake()
