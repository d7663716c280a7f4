"""Wakes the uplink when paho's socket has something, and works it on the uplink's turn."""

import asyncio
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from paho.mqtt.client import Client

from gateway.uplink.traffic import bytes_carried

if TYPE_CHECKING:
    from paho.mqtt.client import SocketLike  # defined for type checkers alone


class SocketWatch:
    """The readiness of one paho client's socket on the running loop.

    A watcher of the loop only notes what is ready, switches itself off and wakes: paho runs
    inside `service`, so that an exception of it arrives where the uplink handles all others.
    """

    def __init__(self, client: Client, wake: Callable[[], None]) -> None:
        self._client = client
        self._wake = wake
        self._loop = asyncio.get_running_loop()
        self._socket: SocketLike | None = None
        self._readable = False
        self._writable = False
        self._carried = 0

    @property
    def bytes_carried(self) -> int:
        """Bytes that the connection has carried both ways so far, or had when it ended."""
        if self._socket is not None:
            self._carried = bytes_carried(self._socket)
        return self._carried

    @property
    def open(self) -> bool:
        """True between `begin` and the end of the connection, whoever ended it."""
        return self._socket is not None

    def begin(self, socket: "SocketLike") -> None:
        """Watch the socket of a client that has just sent its CONNECT."""
        self._socket = socket
        self._client.on_socket_close = self._on_close
        self._client.on_socket_register_write = self._on_register_write
        self._client.on_socket_unregister_write = self._on_unregister_write
        self._loop.add_reader(socket, self._on_readable)
        if self._client.want_write():
            self._loop.add_writer(socket, self._on_writable)

    def service(self) -> None:
        """Read, write and keep alive as far as the socket allows now."""
        if self._readable:
            self._read()
        if self._writable:
            self._write()
        # While a long packet leaves, a PINGREQ would only queue behind it and count as lost.
        if self._socket is not None and not self._client.want_write():
            self._client.loop_misc()

    def end(self) -> None:
        """Close the socket, if paho has not."""
        if (socket := self._socket) is not None:
            self._unwatch()
            socket.close()

    def _read(self) -> None:
        """Read all there is; TLS may hold decrypted packets that the socket no longer shows."""
        self._readable = False
        more = True
        while more and self._socket is not None:
            self._client.loop_read()
            pending = getattr(self._socket, "pending", None)
            more = pending is not None and bool(pending())
        if self._socket is not None:
            self._loop.add_reader(self._socket, self._on_readable)

    def _write(self) -> None:
        self._writable = False
        self._client.loop_write()
        if self._socket is not None and self._client.want_write():
            self._loop.add_writer(self._socket, self._on_writable)

    def _on_readable(self) -> None:
        if self._socket is not None:
            self._loop.remove_reader(self._socket)
        self._readable = True
        self._wake()

    def _on_writable(self) -> None:
        if self._socket is not None:
            self._loop.remove_writer(self._socket)
        self._writable = True
        self._wake()

    def _on_register_write(self, _client: Client, _data: Any, socket: "SocketLike") -> None:
        self._loop.add_writer(socket, self._on_writable)

    def _on_unregister_write(self, _client: Client, _data: Any, socket: "SocketLike") -> None:
        self._loop.remove_writer(socket)

    def _on_close(self, _client: Client, _data: Any, _socket: "SocketLike") -> None:
        self._unwatch()

    def _unwatch(self) -> None:
        if self._socket is not None:
            self._carried = bytes_carried(self._socket)
            self._loop.remove_reader(self._socket)
            self._loop.remove_writer(self._socket)
            self._socket = None
