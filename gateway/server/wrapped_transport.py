"""A transport on top of another one, which does what it does not do itself."""

import asyncio
from typing import Any, cast


class WrappedTransport(asyncio.Transport):
    """Passes reading, limits and information on to the socket's transport."""

    _transport: asyncio.Transport

    def pause_reading(self) -> None:
        """Stop reading from the socket."""
        self._transport.pause_reading()

    def resume_reading(self) -> None:
        """Read again."""
        self._transport.resume_reading()

    def set_write_buffer_limits(self, high: int | None = None, low: int | None = None) -> None:
        """Set how many bytes may wait for the socket."""
        self._transport.set_write_buffer_limits(high, low)

    def get_write_buffer_size(self) -> int:
        """Return how many bytes wait for the socket."""
        return self._transport.get_write_buffer_size()

    def get_extra_info(self, name: str, default: Any = None) -> Any:
        """Return information of the socket, or of TLS on it."""
        return self._transport.get_extra_info(name, default)


class PassingConnection(WrappedTransport):
    """Between a socket and the protocol of a client: passes everything on in both directions.

    Subclasses override what they change.
    """

    def __init__(self, inner: Any) -> None:
        super().__init__()
        self._inner = inner

    # Called by the socket's transport.

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Begin the client's protocol."""
        self._transport = cast("asyncio.Transport", transport)
        self._inner.connection_made(self)

    def data_received(self, data: bytes) -> None:
        """Pass on what is received."""
        self._inner.data_received(data)

    def eof_received(self) -> bool:
        """Pass on the end."""
        return bool(self._inner.eof_received())

    def connection_lost(self, error: Exception | None) -> None:
        """End the client."""
        self._inner.connection_lost(error)

    def pause_writing(self) -> None:
        """Pass on that the peer reads too slowly."""
        self._inner.pause_writing()

    def resume_writing(self) -> None:
        """Pass on that it reads again."""
        self._inner.resume_writing()

    # Called by the protocol of the client.

    @property
    def max_size(self) -> int:
        """Bytes that are read at a time."""
        return cast("int", self._transport.max_size)  # type: ignore[attr-defined]  # as asyncio has it

    @max_size.setter
    def max_size(self, size: int) -> None:
        self._transport.max_size = size  # type: ignore[attr-defined]  # as asyncio has it

    def is_closing(self) -> bool:
        """Return whether it is closed or about to be."""
        return self._transport.is_closing()

    def is_reading(self) -> bool:
        """Return whether the socket is read."""
        return self._transport.is_reading()

    def write(self, data: bytes | bytearray | memoryview) -> None:
        """Send bytes."""
        self._transport.write(data)

    def can_write_eof(self) -> bool:
        """Return whether the socket can be closed for writing only."""
        return self._transport.can_write_eof()

    def write_eof(self) -> None:
        """Close it so."""
        self._transport.write_eof()

    def close(self) -> None:
        """Close it once everything is sent."""
        self._transport.close()

    def abort(self) -> None:
        """Close it at once."""
        self._transport.abort()
