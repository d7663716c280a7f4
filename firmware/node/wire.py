"""A connection to a broker in which no wait is without end, whatever the broker does.

umqtt itself waits for ever for the rest of a packet, and takes the memory for any size that a
packet says.
"""

import select
import socket

from . import const

TYPE_CHECKING = False  # MicroPython has no typing module
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from .loop import Clock

_BYTES_MAX = const(1024)
"""Bytes that are heard in one go: the messages of a gateway are shorter by far."""

_POLL_MS = const(20)


class Wire:
    """Stands in for the module `socket` and for the one socket that umqtt makes of it.

    What is begun with `begin` has to be done within its time, and hears 1 KiB at most; OSError ends
    it otherwise. `idle` is called meanwhile, every 20 ms. With `context`, a TLS context, the broker
    has to prove that it is `host`.
    """

    def __init__(
        self, clock: "Clock", idle: "Callable[[], None]", host: str, context: "Any" = None
    ) -> None:
        self._idle = idle
        self._clock = clock
        self._host = host
        self._context = context
        self._socket: Any = None
        self._until = 0
        self._left = 0
        self._waits = True
        self.getaddrinfo = socket.getaddrinfo

    def begin(self, milliseconds: int) -> None:
        """Give what follows so much time."""
        self._until = self._clock.ms() + milliseconds
        self._left = _BYTES_MAX

    def socket(self) -> "Wire":
        """Return itself, not connected."""
        self.close()
        self._socket = socket.socket()
        return self

    def connect(self, address: "Any") -> None:
        """Connect; the TLS handshake is part of the first write."""
        self._waits = True
        self._socket.setblocking(False)  # noqa: FBT003 - it takes it by place alone
        try:
            self._socket.connect(address)
        except OSError:  # it is on its way, or the wait ends at once
            pass
        self._wait(select.POLLOUT)
        if self._context is not None:
            self._socket = self._context.wrap_socket(
                self._socket, server_hostname=self._host, do_handshake_on_connect=False
            )

    def settimeout(self, _seconds: "float | None") -> None:
        """Leave the time to `begin`."""

    def setblocking(self, waits: bool) -> None:
        """Say whether `read` waits for its first byte."""
        self._waits = waits

    def is_ready(self, what: int) -> bool:
        """Return whether something can be read or written now."""
        return bool(self._poll(what, 0))

    def read(self, size: int) -> "bytes | None":
        """Return so many bytes; None where none has come and `setblocking` said not to wait."""
        if not 0 <= size <= self._left:
            raise OSError("%d bytes" % size)
        self._left -= size
        heard = b""
        while len(heard) < size:
            data: bytes | None = self._socket.read(size - len(heard))
            if data:
                heard += data
            elif data is not None:
                raise OSError("closed")
            elif self._waits:
                self._wait(select.POLLIN)
            else:
                return None
        return heard

    def write(self, data: "bytes | str", size: "int | None" = None) -> None:
        """Send all of it, or its first bytes."""
        left = data.encode() if isinstance(data, str) else bytes(data)
        left = left if size is None else left[:size]
        while left:
            sent: int | None = self._socket.write(left)
            if sent:
                left = left[sent:]
            else:
                self._wait(select.POLLOUT)

    def close(self) -> None:
        """Give the connection up, if there is one."""
        wire, self._socket = self._socket, None
        if wire is not None:
            wire.close()

    def _wait(self, what: int) -> None:
        while not self._poll(what, _POLL_MS):
            if self._clock.ms() >= self._until:
                raise OSError("nothing came in time")
            self._idle()

    def _poll(self, what: int, milliseconds: int) -> "list[Any]":
        poll = select.poll()
        poll.register(self._socket, what)
        return poll.poll(milliseconds)
