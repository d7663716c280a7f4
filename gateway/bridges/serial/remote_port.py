"""Ports elsewhere: over a network, or two topics of the gateway's own broker."""

import asyncio
import contextlib
import os
import socket
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from gateway.bridges.serial.port import READ_MAX, Line, Port, PortError
from gateway.bridges.supervision.host import Host
from gateway.mqtt.message import Message
from gateway.mqtt.reason_codes import ReasonCode

if TYPE_CHECKING:
    from serial import Serial


OPEN_TIMEOUT = 10.0
"""Seconds within which the remote end must answer."""

UNSENT_MAX = 64 * 1024
"""Bytes that wait for the network; bytes that do not fit are dropped."""

UNREAD_MAX = 64
"""Pieces read ahead from an RFC 2217 server; beyond them its thread waits."""

UNWRITTEN_MAX = 16
"""Unfinished writes to an RFC 2217 server; a further one is dropped."""

READ_TIMEOUT = 0.2
"""Seconds after which the reading thread checks whether it is to end."""

DEAD_AFTER = 30
"""Seconds after which a silent remote end is disconnected: TCP keep-alive, three tries."""


def check_url(url: str) -> None:
    """Raise ValueError for a URL without a port at a host."""
    allowed = "socket://host:port or rfc2217://host:port"
    try:
        parts = urlsplit(url)
        complete = parts.hostname and parts.port
    except ValueError:
        complete = None
    if not complete or parts.scheme not in ("socket", "rfc2217"):
        raise ValueError(allowed)


async def open_remote(url: str, line: Line) -> Port:
    """Connect; raises PortError without an answer within OPEN_TIMEOUT."""
    try:
        async with asyncio.timeout(OPEN_TIMEOUT):
            if url.startswith("socket://"):
                return await SocketPort.open(url)
            return await Rfc2217Port.open(url, line)
    except TimeoutError:
        raise PortError(f"no answer within {OPEN_TIMEOUT:g} s") from None
    except OSError as failure:
        number = failure.errno or 0  # below 0 for an unknown host name
        raise PortError(os.strerror(number) if number > 0 else str(failure)) from failure


class SocketPort:
    """A TCP connection that carries the bytes of the line."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader = reader
        self._writer = writer

    @classmethod
    async def open(cls, url: str) -> "SocketPort":
        """Connect; raises OSError."""
        parts = urlsplit(url)
        reader, writer = await asyncio.open_connection(parts.hostname, parts.port, limit=READ_MAX)
        plug = writer.get_extra_info("socket")
        plug.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
        for option in (socket.TCP_KEEPIDLE, socket.TCP_KEEPINTVL):
            plug.setsockopt(socket.IPPROTO_TCP, option, DEAD_AFTER // 4)
        plug.setsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPCNT, 3)
        return cls(reader, writer)

    async def read(self) -> bytes:
        """Return the next bytes; raises PortError once the connection is closed or lost."""
        try:
            data = await self._reader.read(READ_MAX)
        except OSError as failure:
            raise PortError(failure.strerror or str(failure)) from failure
        if not data:
            raise PortError("the far end has closed the connection")
        return data

    def write(self, data: bytes) -> bool:
        """Send; return False when too many bytes wait already or the connection is lost."""
        transport = self._writer.transport
        if transport.is_closing() or transport.get_write_buffer_size() + len(data) > UNSENT_MAX:
            return False
        self._writer.write(data)
        return True

    def close(self) -> None:
        """Close at once."""
        self._writer.transport.abort()


class Rfc2217Port:
    """A port of an RFC 2217 server; pyserial communicates with it in a thread."""

    def __init__(self, serial: "Serial") -> None:
        self._serial = serial
        self._loop = asyncio.get_running_loop()
        self._pieces: asyncio.Queue[bytes | PortError] = asyncio.Queue(UNREAD_MAX)
        self._closed = False
        self._writing = 0
        self._thread = self._loop.run_in_executor(None, self._read_ahead)

    @classmethod
    async def open(cls, url: str, line: Line) -> "Rfc2217Port":
        """Connect and configure the line; raises PortError."""
        return cls(await asyncio.to_thread(_open_url, url, line))

    async def read(self) -> bytes:
        """Return the next bytes; raises PortError once the connection is lost."""
        piece = await self._pieces.get()
        if isinstance(piece, PortError):
            raise piece
        return piece

    def write(self, data: bytes) -> bool:
        """Send from another thread; return False when too many writes are unfinished."""
        if self._closed or self._writing >= UNWRITTEN_MAX:
            return False
        self._writing += 1
        self._loop.run_in_executor(None, self._send, data).add_done_callback(self._sent)
        return True

    def close(self) -> None:
        """Let the thread end and close the connection."""
        self._closed = True
        while not self._pieces.empty():  # the thread may wait for space in the queue
            self._pieces.get_nowait()

    def _send(self, data: bytes) -> None:
        with contextlib.suppress(OSError):  # the reader gets the same error
            self._serial.write(data)

    def _sent(self, _: "asyncio.Future[None]") -> None:
        self._writing -= 1

    def _read_ahead(self) -> None:
        try:
            while not self._closed:
                data = self._serial.read(1)
                if data:
                    data += self._serial.read(min(self._serial.in_waiting, READ_MAX))
                    self._put(data)
        except (OSError, TypeError) as failure:  # TypeError: closed under the reader
            self._put(PortError(str(failure)))
        finally:
            connection = getattr(self._serial, "_socket", None)
            with contextlib.suppress(OSError):
                self._serial.close()
            if connection is not None:  # pyserial leaves it open if the remote end closed it first
                connection.close()

    def _put(self, piece: bytes | PortError) -> None:
        if not self._closed:
            asyncio.run_coroutine_threadsafe(self._pieces.put(piece), self._loop).result()


def _open_url(url: str, line: Line) -> "Serial":
    from serial import serial_for_url

    try:
        settings: dict[str, Any] = line.settings
        return serial_for_url(url, timeout=READ_TIMEOUT, **settings)
    except (OSError, ValueError) as failure:
        raise PortError(str(failure)) from failure


SCHEME = "topic://"

WAITING_MAX = 65_536
"""Bytes that wait to be read; a message that does not fit is refused."""


class TopicPort:
    """Receives what nodes publish on `<topic>/up`, and publishes on `<topic>/down`, at QoS 0."""

    def __init__(self, url: str, host: Host) -> None:
        topic = url.removeprefix(SCHEME)
        self._down = f"{topic}/down"
        self._host = host
        self._waiting = bytearray()
        self._arrived = asyncio.Event()
        subscribe = host.services.subscribe
        self._end = subscribe(host.publisher.client_id, f"{topic}/up", self._receive)

    async def read(self) -> bytes:
        """Return the next bytes, at least one; this line is never lost."""
        await self._arrived.wait()
        self._arrived.clear()
        data = bytes(self._waiting)
        self._waiting.clear()
        return data

    def write(self, data: bytes) -> bool:
        """Publish; return False when the broker rejects it."""
        return self._host.send(self._down, data, qos=0) < 0x80

    def close(self) -> None:
        """Unsubscribe."""
        self._end()

    def _receive(self, message: Message) -> ReasonCode:
        payload = bytes(message.payload)
        if len(self._waiting) + len(payload) > WAITING_MAX:
            return ReasonCode.QUOTA_EXCEEDED
        if payload:
            self._waiting += payload
            self._arrived.set()
        return ReasonCode.SUCCESS
