"""Accepts connections from listening sockets for the gateway's own loop."""

import errno
import logging
import socket
from collections.abc import Callable
from typing import Any

from gateway.server.gateway_loop import GatewayLoop
from gateway.server.socket_selector import READ
from gateway.server.socket_transport import SocketTransport

logger = logging.getLogger(__name__)

ACCEPTED_AT_ONCE = 64
"""Connections of the backlog that are accepted in a row."""

PAUSE = 1.0
"""Seconds without accepting after the process or the system reached a limit."""

NO_ROOM = (errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM)


class Acceptor:
    """Makes a transport, and a protocol by `make_protocol`, for every new connection.

    After at most `at_once` of them, their first packets are handled before more are accepted. The
    protocol need not be an `asyncio.Protocol`, but has the methods that are used.
    """

    __slots__ = ("_at_once", "_kind", "_listening", "_loop", "_make_protocol", "_sockets")

    def __init__(
        self,
        loop: GatewayLoop,
        listening: socket.socket,
        make_protocol: Callable[[], Any],
        at_once: int = ACCEPTED_AT_ONCE,
    ) -> None:
        self._at_once = at_once
        self._loop = loop
        self._sockets = loop.sockets
        self._listening = listening
        self._make_protocol = make_protocol
        self._kind = int(listening.family), int(listening.type), listening.proto

    def start(self, backlog: int) -> None:
        """Listen and accept from now on.

        Raise OSError if another process took the address first.
        """
        listening = self._listening
        listening.settimeout(0)
        if listening.family != socket.AF_UNIX:  # one write for each turn; connections inherit it
            listening.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        listening.listen(backlog)
        self._watch(READ)

    def close(self) -> None:
        """Stop accepting."""
        self._watch(0)
        self._listening.close()

    def ready(self, _events: int) -> None:
        """Accept waiting connections; the selector calls this."""
        try:
            for _ in range(self._at_once):
                # what accept() calls: its descriptor object costs as much as the call
                descriptor, address = self._listening._accept()  # type: ignore[attr-defined]  # noqa: SLF001
                self._begin(socket.SocketType(*self._kind, descriptor), address)
        except (BlockingIOError, InterruptedError, ConnectionAbortedError):
            return
        except OSError as error:
            if error.errno in NO_ROOM:
                self._pause(error)
            else:
                context = {"message": "cannot accept", "exception": error}
                self._loop.call_exception_handler(context)

    def _begin(self, sock: socket.SocketType, address: object) -> None:
        try:
            protocol = self._make_protocol()
            SocketTransport(sock, protocol, self._sockets, self._loop).start(address)
        except Exception:
            # the transport's border (ARCHITECTURE.md): a fault of ours ends this connection alone
            logger.exception("unexpected error; closing a new connection")
            self._sockets.serve(sock.fileno(), self, 0)
            sock.close()

    def _pause(self, error: OSError) -> None:
        logger.error("no room for new connections: %s", error)
        self._watch(0)
        self._loop.call_later(PAUSE, self._watch, READ)

    def _watch(self, events: int) -> None:
        descriptor = self._listening.fileno()
        if descriptor >= 0:  # not closed meanwhile
            self._sockets.serve(descriptor, self, events)
