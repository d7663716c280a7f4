"""A client's socket under the gateway's own selector, with asyncio's transport interface."""

import asyncio
import socket
from math import inf
from typing import Any

from gateway.server.socket_selector import READ, READ_SIZE, WRITE, SocketSelector

# Compiled, these are C names.
_READ, _NOT_READ, _NOT_WRITE = READ, ~READ, ~WRITE

DEFAULT_HIGH = 64 * 1024
"""Unsent bytes above which the protocol is asked to pause, as in asyncio."""

JOINED = 16 * 1024
"""Bytes below which unsent data are appended to the data before, rather than stored separately."""

SMALL = 256
"""Bytes of one read that are handled immediately even if the cycle's time is used up: enough for a
client that waits for an answer."""

MAXIMUM_PIECES = 64
"""Pieces that are sent together; the kernel accepts 1,024."""


class SocketTransport:
    """Reads and writes one socket; the protocol sees the same as from asyncio's transport.

    It has the methods of `asyncio.Transport` that clients and TLS use, but is no subclass, which
    could not be compiled. `write` sends at once what the kernel accepts and keeps the rest without
    a copy: its data belong to the transport from then on. The loop calls the protocol's end, never
    while one of its methods runs.
    """

    __slots__ = (
        "_address",
        "_closing",
        "_eof",
        "_events",
        "_high",
        "_loop",
        "_paused",
        "_protocol",
        "_selector",
        "_socket",
        "_unsent",
        "_unsent_bytes",
        "_waits",
        "_wants",
        "max_size",
    )

    def __init__(
        self,
        sock: socket.SocketType,
        protocol: Any,
        selector: SocketSelector,
        loop: asyncio.AbstractEventLoop,
    ) -> None:
        self._socket = sock
        self._protocol = protocol
        self._selector = selector
        self._loop = loop
        self._unsent: list[memoryview] | None = None  # not accepted by the kernel
        self._unsent_bytes = 0
        self._closing = False
        self._eof = False  # nothing is written after the buffer
        self._paused = False  # the protocol was told to stop writing
        self._high = DEFAULT_HIGH
        self._events = 0
        self._waits = False  # received data are read after other clients were served
        self._wants = 0  # READ if the protocol wants them then
        self.max_size = READ_SIZE  # bytes of one read
        self._address: object = None  # of the peer, for the protocol's beginning
        sock.settimeout(0)

    def start(self, address: object = None) -> None:
        """Start the protocol, and read unless it closed or paused at once.

        With the peer's `address` the protocol need not query the system for it.
        """
        self._address = address
        self._watch(READ)
        self._protocol.connection_made(self)
        self._address = None

    def ready(self, events: int) -> None:
        """Serve the socket; the selector calls this."""
        if self._unsent is not None and events & _NOT_READ:
            self._send_unsent(self._unsent)
        if not (events & _NOT_WRITE and self._events & _READ):
            return
        selector = self._selector
        if selector.reading_until == inf or selector.has_time():
            self._receive(self.max_size)
        else:
            self._receive_little()

    def _receive(self, size: int) -> None:
        """Pass up to `size` bytes, or the connection's end, to the protocol."""
        try:
            data = self._socket.recv(size)
        except (BlockingIOError, InterruptedError):
            return
        except OSError as error:
            self._fail(error)
            return
        if data:
            self._protocol.data_received(data)
        elif self._protocol.eof_received():
            self._watch(self._events & ~READ)
        # nothing left to send: no need to wait for a later call
        elif self._unsent is None and not self._closing:
            self._closing = True
            self._end(None)
        else:
            self.close()

    def _receive_little(self) -> None:
        """Pass on what is no more than SMALL bytes; more waits until other clients were served."""
        try:
            waiting = len(self._socket.recv(SMALL + 1, socket.MSG_PEEK))
        except OSError:
            waiting = 0  # the error is raised again by the read
        if waiting <= SMALL:
            self._receive(SMALL)
            return
        # not watched meanwhile, or every poll would return it again
        self._waits, self._wants = True, READ
        self._watch(self._events & ~READ)
        self._selector.later(self._go_on)

    def _go_on(self) -> None:
        """Read what was postponed, unless the connection ended or paused."""
        self._waits = False
        if self._wants and not self._closing:
            self._watch(self._events | READ)
            self._receive(self.max_size)

    def get_extra_info(self, name: str, default: Any = None) -> Any:
        """Return `socket` or `peername`; a peer that is gone has no name."""
        if name == "socket":
            return self._socket
        if name == "peername":
            if self._address:
                return self._address
            try:
                return self._socket.getpeername()
            except OSError:
                return default
        return default

    def is_closing(self) -> bool:
        """Return whether the connection is ending."""
        return self._closing

    def is_reading(self) -> bool:
        """Return whether the protocol gets received data."""
        return bool((self._wants if self._waits else self._events) & READ)

    def pause_reading(self) -> None:
        """Stop passing data to the protocol."""
        self._wants = 0
        self._watch(self._events & ~READ)

    def resume_reading(self) -> None:
        """Pass received data to the protocol again."""
        if self._waits:
            self._wants = READ
        elif not self._closing:
            self._watch(self._events | READ)

    def set_write_buffer_limits(self, high: int | None = None, low: int | None = None) -> None:
        """Let the protocol pause above `high` bytes, and continue below a quarter of it."""
        del low
        self._high = DEFAULT_HIGH if high is None else high

    def get_write_buffer_size(self) -> int:
        """Return the bytes that the kernel has not accepted yet."""
        return self._unsent_bytes

    def can_write_eof(self) -> bool:
        """Return True: either half of a socket can be closed."""
        return True

    def write_eof(self) -> None:
        """Close our half once everything is written."""
        if not self._eof and not self._closing:
            self._eof = True
            if self._unsent is None:
                self._shut_down()

    def write(self, data: bytes | bytearray | memoryview) -> None:
        """Send what the kernel accepts, and the rest when it can; nothing after an end."""
        if self._closing or self._eof:
            return
        size = len(data)
        sent = 0
        if self._unsent is None:
            try:
                sent = self._socket.send(data)
            except (BlockingIOError, InterruptedError):
                pass
            except OSError as error:
                self._fail(error)
                return
            if sent == size:
                return
        rest = memoryview(data)[sent:]
        # A view keeps its whole object in memory, unless most of it is unsent; shared `bytes` live
        # anyway.
        if 4 * sent > size and type(data) is bytearray:  # only this transport uses it
            rest = memoryview(bytes(rest))
        self._buffer(rest)

    def _buffer(self, rest: memoryview) -> None:
        """Append data to be sent when the kernel accepts more."""
        if self._unsent is None:
            self._unsent = [rest]
            self._watch(self._events | WRITE)
        # A view of each small packet would cost 200 bytes.
        elif len(rest) < JOINED and len(self._unsent[-1]) < JOINED:
            self._unsent[-1] = memoryview(b"".join((self._unsent[-1], rest)))
        else:
            self._unsent.append(rest)
        self._unsent_bytes += len(rest)
        if self._unsent_bytes > self._high and not self._paused:
            self._paused = True
            self._protocol.pause_writing()

    def close(self) -> None:
        """End the connection once everything is written."""
        if not self._closing:
            self._closing = True
            if self._unsent is None:
                # The descriptor must not be closed within a turn: a new socket may reuse the
                # number.
                self._events = 0
                self._loop.call_soon(self._end, None)
            else:
                self._watch(self._events & ~READ)

    def abort(self) -> None:
        """End the connection now."""
        self._fail(None)

    def _send_unsent(self, unsent: list[memoryview]) -> None:
        try:
            sent = self._socket.sendmsg(unsent[:MAXIMUM_PIECES])
        except (BlockingIOError, InterruptedError):
            return
        except OSError as error:
            self._fail(error)
            return
        self._unsent_bytes -= sent
        while unsent and sent >= len(unsent[0]):
            sent -= len(unsent.pop(0))
        if unsent:
            unsent[0] = unsent[0][sent:]
        else:
            self._unsent = None
            self._watch(self._events & ~WRITE)
            self._all_sent()
        # A quarter, so that a peer at the limit is not stopped and started with each packet.
        if self._paused and self._unsent_bytes <= self._high // 4:
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
        except OSError as error:  # the peer closed first
            self._fail(error)

    def _fail(self, error: OSError | None) -> None:
        """End the connection, and drop unsent data."""
        if self._closing and self._unsent is None:
            return  # its end is scheduled
        self._closing = True
        self._unsent = None
        self._unsent_bytes = 0
        # a broken socket would be ready in every poll until its end has run
        self._watch(0)
        self._loop.call_soon(self._end, error)

    def _watch(self, events: int) -> None:
        if events != self._events:
            self._events = events
            self._selector.serve(self._socket.fileno(), self, events)

    def _end(self, error: OSError | None) -> None:
        self._events = 0
        self._selector.forget(self._socket.fileno())
        try:
            self._protocol.connection_lost(error)
        # also if the protocol raises: the descriptor must not leak
        finally:
            self._socket.close()
