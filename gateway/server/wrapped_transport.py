"""A transport on top of another one, which does what it does not do itself."""

import asyncio
from typing import Any


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
