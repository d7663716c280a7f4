"""A client's socket under the gateway's own selector, with the manners of asyncio's transports."""

import asyncio
import socket
from math import inf
from time import monotonic
from typing import Any

from gateway.server.socket_selector import READ, READ_SIZE, READING, WRITE, SocketSelector

DEFAULT_HIGH = 64 * 1024
"""Bytes that wait for a slow peer before the protocol is told to pause, as asyncio has it."""

JOINED = 16 * 1024
"""Bytes below which what waits is copied to what waits before it, rather than kept beside it."""

SMALL = 256
"""Bytes of one read that are handled at once, though others have taken all the time: what a client
sends that waits for an answer."""

MAXIMUM_PIECES = 64
"""Pieces that are sent at once; the kernel takes 1,024."""


class SocketTransport:
    """Reads and writes one socket; the protocol sees what it would see of asyncio's transport.

    It has what clients and TLS use of `asyncio.Transport` and is none, which would not be compiled.
    `write` sends at once what the kernel takes and keeps the rest, without a copy: its data belong
    to the transport from then on. The protocol's end comes by a call of the loop's, never while one
    of its methods runs.
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
        self._unsent: list[memoryview] | None = None  # what the kernel did not take
        self._unsent_bytes = 0
        self._closing = False
        self._eof = False  # nothing is written behind the buffer
        self._paused = False  # the protocol was told to write no more
        self._high = DEFAULT_HIGH
        self._events = 0
        self._waits = False  # what came is read when others have had their turn
        self._wants = 0  # READ if the protocol is to be given it then
        self.max_size = READ_SIZE  # bytes that are read at a time
        self._address: object = None  # of the peer, while the protocol's beginning may ask for it
        sock.settimeout(0)

    def start(self, address: object = None) -> None:
        """Tell the protocol, and begin to read unless it closed or paused at once.

        With the peer's `address` the protocol need not ask the system for it.
        """
        self._address = address
        self._watch(READ)
        self._protocol.connection_made(self)
        self._address = None

    def ready(self, events: int) -> None:
        """Serve the socket, as the selector asks."""
        if events & ~READ and self._unsent is not None:
            self._send_unsent(self._unsent)
        if not (events & ~WRITE and self._events & READ):
            return
        now, until = monotonic(), self._selector.reading_until
        if until == inf:  # as `has_time`, without a call for each read
            self._selector.reading_until = now + READING
        if now < until:
            self._receive(self.max_size)
        else:
            self._receive_little()

    def _receive(self, size: int) -> None:
        """Give the protocol so many bytes at most, or the connection's end."""
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
        elif self._unsent is None and not self._closing:
            self._closing = True
            self._end(None)
        else:
            self.close()

    def _receive_little(self) -> None:
        """Give the protocol what is no more than SMALL; the rest waits until others had a turn."""
        try:
            waiting = len(self._socket.recv(SMALL + 1, socket.MSG_PEEK))
        except OSError:
            waiting = 0  # which is seen again when it is read
        if waiting <= SMALL:
            self._receive(SMALL)
            return
        self._waits, self._wants = True, READ
        self._watch(self._events & ~READ)
        self._selector.later(self._go_on)

    def _go_on(self) -> None:
        """Read what was put off, unless the connection ended or is to be read later."""
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
        """Return whether the connection ends."""
        return self._closing

    def is_reading(self) -> bool:
        """Return whether the protocol is given what comes."""
        return bool((self._wants if self._waits else self._events) & READ)

    def pause_reading(self) -> None:
        """Give the protocol nothing for a while."""
        self._wants = 0
        self._watch(self._events & ~READ)

    def resume_reading(self) -> None:
        """Give the protocol again what comes."""
        if self._waits:
            self._wants = READ
        elif not self._closing:
            self._watch(self._events | READ)

    def set_write_buffer_limits(self, high: int | None = None, low: int | None = None) -> None:
        """Tell the protocol to pause above `high` bytes, and to go on below a quarter of it."""
        del low
        self._high = DEFAULT_HIGH if high is None else high

    def get_write_buffer_size(self) -> int:
        """Return the bytes that the kernel did not take yet."""
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
        """Send as much as the kernel takes, and the rest when it can; nothing behind an end."""
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
        # A view holds all of its bytes; those of a `bytes` others may hold anyway.
        if 4 * sent > size and type(data) is bytearray:  # nobody else needs what was sent
            rest = memoryview(bytes(rest))
        self._buffer(rest)

    def _buffer(self, rest: memoryview) -> None:
        """Send it when the kernel takes more, behind what waits already."""
        if self._unsent is None:
            self._unsent = [rest]
            self._watch(self._events | WRITE)
        # Small packets to a peer that does not read would be a view of 200 bytes each.
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
                # Its descriptor must not be closed within a turn: another may get the number.
                self._events = 0  # deaf until the socket's end, which takes it out of the epoll
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
        except OSError as error:  # the peer was faster
            self._fail(error)

    def _fail(self, error: OSError | None) -> None:
        """End the connection, and give up what was not written."""
        if self._closing and self._unsent is None:
            return  # its end is on the way
        self._closing = True
        self._unsent = None
        self._unsent_bytes = 0
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
        finally:
            self._socket.close()
