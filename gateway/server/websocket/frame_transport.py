"""What a protocol behind a WebSocket takes for its transport."""

import asyncio
from typing import Any, Protocol


class Frames(Protocol):
    """The WebSocket in between."""

    @property
    def closing(self) -> bool:
        """True once either side has begun to close."""
        ...

    def write(self, data: bytes | bytearray | memoryview) -> None:
        """Send one binary frame."""
        ...

    def close(self) -> None:
        """Begin the closing handshake."""
        ...


class FrameTransport(asyncio.Transport):
    """Writes and closes through frames; all else is the socket's."""

    def __init__(self, frames: Frames, transport: asyncio.Transport) -> None:
        super().__init__()
        self._frames = frames
        self._transport = transport

    def write(self, data: bytes | bytearray | memoryview) -> None:
        """Send the bytes as one binary frame."""
        self._frames.write(data)

    def can_write_eof(self) -> bool:
        """Return False: a WebSocket has no half-close."""
        return False

    def close(self) -> None:
        """Begin the closing handshake; the socket is closed when the peer has answered."""
        self._frames.close()

    def abort(self) -> None:
        """Close the socket now."""
        self._transport.abort()

    def is_closing(self) -> bool:
        """Return whether nothing can be written any more."""
        return self._frames.closing or self._transport.is_closing()

    def pause_reading(self) -> None:
        """Leave what comes in the socket."""
        self._transport.pause_reading()

    def resume_reading(self) -> None:
        """Read again."""
        self._transport.resume_reading()

    def set_write_buffer_limits(self, high: int | None = None, low: int | None = None) -> None:
        """Say how many bytes may wait for the socket."""
        self._transport.set_write_buffer_limits(high, low)

    def get_write_buffer_size(self) -> int:
        """Return how many bytes wait for the socket."""
        return self._transport.get_write_buffer_size()

    def get_extra_info(self, name: str, default: Any = None) -> Any:
        """Return what the socket, or TLS on it, knows of itself."""
        return self._transport.get_extra_info(name, default)
