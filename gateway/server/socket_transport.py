"""A client's socket under the gateway's own selector, with the manners of asyncio's transports."""

import asyncio
import socket
from typing import Any

from gateway.server.socket_selector import READ, WRITE, SocketSelector

DEFAULT_HIGH = 64 * 1024
"""Bytes that wait for a slow peer before the protocol is told to pause, as asyncio has it."""


class SocketTransport(asyncio.Transport):
    """Reads and writes one socket; the protocol sees what it would see of asyncio's transport.

    `write` sends at once what the kernel takes and keeps the rest. The protocol's end comes by
    a call of the loop's, never while one of its methods runs.
    """

    __slots__ = (
        "_buffer",
        "_closing",
        "_eof",
        "_events",
        "_high",
        "_loop",
        "_paused",
        "_protocol",
        "_selector",
        "_socket",
    )

    def __init__(
        self,
        sock: socket.socket,
        protocol: asyncio.Protocol,
        selector: SocketSelector,
        loop: asyncio.AbstractEventLoop,
    ) -> None:
        self._socket = sock
        self._protocol = protocol
        self._selector = selector
        self._loop = loop
        self._buffer: bytearray | None = None  # what the kernel did not take
        self._closing = False
        self._eof = False  # nothing is written behind the buffer
        self._paused = False  # the protocol was told to write no more
        self._high = DEFAULT_HIGH
        self._events = 0
        sock.settimeout(0)

    def start(self) -> None:
        """Tell the protocol, and begin to read unless it closed or paused at once."""
        self._watch(READ)
        self._protocol.connection_made(self)

    def ready(self, events: int) -> None:
        """Serve the socket, as the selector asks."""
        if events & ~READ and self._buffer is not None:
            self._send_buffer()
        if events & ~WRITE and self._events & READ:
            self._receive()

    def get_extra_info(self, name: str, default: Any = None) -> Any:
        """Return `socket` or `peername`; a peer that is gone has no name."""
        if name == "socket":
            return self._socket
        if name == "peername":
            try:
                return self._socket.getpeername()
            except OSError:
                return default
        return default

    def is_closing(self) -> bool:
        """Return whether the connection ends."""
        return self._closing

    def is_reading(self) -> bool:
        """Return whether the protocol is given what comes."""
        return bool(self._events & READ)

    def pause_reading(self) -> None:
        """Give the protocol nothing for a while."""
        self._watch(self._events & ~READ)

    def resume_reading(self) -> None:
        """Give the protocol again what comes."""
        if not self._closing:
            self._watch(self._events | READ)

    def set_write_buffer_limits(self, high: int | None = None, low: int | None = None) -> None:
        """Tell the protocol to pause above `high` bytes, and to go on below a quarter of it."""
        del low
        self._high = DEFAULT_HIGH if high is None else high

    def get_write_buffer_size(self) -> int:
        """Return the bytes that the kernel did not take yet."""
        return 0 if self._buffer is None else len(self._buffer)

    def can_write_eof(self) -> bool:
        """Return True: either half of a socket can be closed."""
        return True

    def write_eof(self) -> None:
        """Close our half once everything is written."""
        if not self._eof and not self._closing:
            self._eof = True
            if self._buffer is None:
                self._shut_down()

    def write(self, data: bytes | bytearray | memoryview) -> None:
        """Send as much as the kernel takes, and the rest when it can; nothing behind an end."""
        if self._closing or self._eof:
            return
        if self._buffer is not None:
            self._buffer += data
        else:
            try:
                sent = self._socket.send(data)
            except (BlockingIOError, InterruptedError):
                sent = 0
            except OSError as error:
                self._fail(error)
                return
            if sent == len(data):
                return
            self._buffer = bytearray(memoryview(data)[sent:])
            self._watch(self._events | WRITE)
        if len(self._buffer) > self._high and not self._paused:
            self._paused = True
            self._protocol.pause_writing()

    def close(self) -> None:
        """End the connection once everything is written."""
        if not self._closing:
            self._closing = True
            self._watch(self._events & ~READ)
            if self._buffer is None:
                self._loop.call_soon(self._end, None)

    def abort(self) -> None:
        """End the connection now."""
        self._fail(None)

    def _receive(self) -> None:
        selector = self._selector
        try:
            count = self._socket.recv_into(selector.buffer)
        except (BlockingIOError, InterruptedError):
            return
        except OSError as error:
            self._fail(error)
            return
        if count:
            self._protocol.data_received(bytes(memoryview(selector.buffer)[:count]))
        elif self._protocol.eof_received():
            self._watch(self._events & ~READ)
        else:
            self.close()

    def _send_buffer(self) -> None:
        buffer = self._buffer
        if buffer is None:
            return
        try:
            del buffer[: self._socket.send(buffer)]
        except (BlockingIOError, InterruptedError):
            return
        except OSError as error:
            self._fail(error)
            return
        if not buffer:
            self._buffer = None
            self._watch(self._events & ~WRITE)
            self._all_sent()
        if self._paused and len(buffer) <= self._high // 4:
            self._paused = False
            self._protocol.resume_writing()

    def _all_sent(self) -> None:
        if self._closing:
            self._loop.call_soon(self._end, None)
        elif self._eof:
            self._shut_down()

    def _shut_down(self) -> None:
        try:
            self._socket.shutdown(socket.SHUT_WR)
        except OSError as error:  # the peer was faster
            self._fail(error)

    def _fail(self, error: OSError | None) -> None:
        """End the connection, and give up what was not written."""
        if self._closing and self._buffer is None:
            return  # its end is on the way
        self._closing = True
        self._buffer = None
        self._watch(0)
        self._loop.call_soon(self._end, error)

    def _watch(self, events: int) -> None:
        if events != self._events:
            self._events = events
            self._selector.serve(self._socket.fileno(), self, events)

    def _end(self, error: OSError | None) -> None:
        self._watch(0)
        try:
            self._protocol.connection_lost(error)
        finally:
            self._socket.close()
