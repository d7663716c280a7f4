"""One network connection: its socket, its bytes in both directions, and their count."""

import asyncio
import socket
import struct
import threading
import weakref
from collections.abc import Callable
from contextlib import suppress
from typing import cast

from gateway.extras import how_to_install
from gateway.uplink.errors import End, problem_of

CONNECT_SECONDS = 10.0
"""Maximum seconds for the TCP connection to one address."""


TCP_INFO_LENGTH = 208
"""Bytes of `struct tcp_info` up to and with `tcpi_bytes_sent`; Linux has them since 4.19."""

_COUNT = struct.Struct("=Q")

RECEIVED_AT, SENT_AT = 128, 200
"""The offsets of `tcpi_bytes_received` and `tcpi_bytes_sent` (linux/tcp.h, which only grows)."""

WEBSOCKET = ("ws:", "wss:")


def open_socket(
    host: str,
    port: int,
    on_opened: Callable[[socket.socket | None, str], None],
    proxy: str | None = None,
) -> None:
    """Connect, perhaps through the proxy of a URL.

    `on_opened` gets the socket, or None and the reason, on the running loop. A thread of the loop's
    pool would not do: a stop would wait for it. If the loop is closed by then, so is the socket.
    """
    arguments = (host, port, asyncio.get_running_loop(), on_opened, proxy)
    threading.Thread(target=_open, args=arguments, daemon=True).start()


def _open(
    host: str,
    port: int,
    loop: asyncio.AbstractEventLoop,
    on_opened: Callable[[socket.socket | None, str], None],
    proxy: str | None,
) -> None:
    opened: socket.socket | None = None
    error = ""
    try:
        opened = _connected(host, port, proxy)
        opened.settimeout(0)
    except (OSError, ValueError) as reason:  # ValueError: a host name that cannot be encoded
        error = str(reason)

    def deliver() -> None:
        if unclaimed is not None:
            unclaimed.detach()
        on_opened(opened, error)

    # A loop that closes drops what it has not called yet.
    unclaimed = None if opened is None else weakref.finalize(deliver, opened.close)
    with suppress(RuntimeError):  # the loop has closed meanwhile
        loop.call_soon_threadsafe(deliver)


def _connected(host: str, port: int, proxy: str | None) -> socket.socket:
    """Return a connected socket; raise OSError, or ValueError."""
    if proxy is None:
        # A text would be encoded by a codec with tables of 0.3 MiB, which ASCII does not need.
        name = host.encode() if host.isascii() else host
        return socket.create_connection((name, port), CONNECT_SECONDS)  # type: ignore[arg-type]  # as getaddrinfo
    try:
        from python_socks import ProxyError, ProxyTimeoutError
        from python_socks.sync import Proxy
    except ImportError as error:
        raise OSError(f"a proxy needs its extra: {how_to_install('proxy')}") from error
    try:
        connected: socket.socket = Proxy.from_url(proxy).connect(host, port, CONNECT_SECONDS)
    except (ProxyError, ProxyTimeoutError) as error:
        shown = proxy.rpartition("@")[2].rpartition("//")[2]
        raise OSError(f"proxy {shown}: {error or 'no answer in time'}") from error
    return connected


async def is_reachable(host: str, port: int, proxy: str | None) -> bool:
    """Return whether a connection can be made now; it is closed at once."""
    found: asyncio.Future[bool] = asyncio.get_running_loop().create_future()

    def opened(sock: socket.socket | None, _error: str) -> None:
        if sock is not None:
            sock.close()
        if not found.done():
            found.set_result(sock is not None)

    open_socket(host, port, opened, proxy)
    return await found


def bytes_carried(connection: object) -> int:
    """Return the bytes of a connection both ways: MQTT, with TLS around it if there is any.

    Headers of TCP and IP are not included; retransmissions are. 0 if the kernel does not report it.
    """
    option = getattr(socket, "TCP_INFO", None)
    if option is None or not isinstance(connection, socket.socket):  # not Linux
        return 0
    try:
        info = connection.getsockopt(socket.IPPROTO_TCP, option, TCP_INFO_LENGTH)
    except OSError:  # closed, or not TCP
        return 0
    if len(info) < TCP_INFO_LENGTH:
        return 0
    [received] = _COUNT.unpack_from(info, RECEIVED_AT)
    [sent] = _COUNT.unpack_from(info, SENT_AT)
    return int(received + sent)


class FleetStream(asyncio.Protocol):
    """A protocol that passes received bytes to `on_data`; its end waits until it is queried."""

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
        """Send packets, in one system call; after the connection's end they are dropped."""
        if self.lost is None and self._transport is not None:
            self._transport.write(data)

    async def end(self) -> None:
        """End the connection at once; return when its socket is closed, or about to be."""
        if self._transport is None:
            self._socket.close()
            return
        self._carried = self.bytes_carried
        self._transport.abort()
        await self._ended.wait()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Store the transport."""
        self._transport = cast("asyncio.Transport", transport)  # or an object with its methods
        self._transport.set_write_buffer_limits(0)
        self._wake()

    def resume_writing(self) -> None:
        """Wake the task that waits for written bytes to be sent."""
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
        self._lose("" if error is None else problem_of(error))
        self._ended.set()

    def _lose(self, reason: str) -> None:
        if self.lost is None:
            self.lost = reason
        self._wake()


def make_stream(
    sock: socket.socket,
    wake: Callable[[], None],
    on_data: Callable[[bytes], None],
    url: str,
    maximum_packet_size: int,
) -> FleetStream:
    """Return the stream that `url` asks for."""
    if not url.startswith(WEBSOCKET):
        return FleetStream(sock, wake, on_data)
    from gateway.uplink.fleet.websocket_stream import WebSocketStream  # an extra

    return WebSocketStream(sock, wake, on_data, url, maximum_packet_size)
