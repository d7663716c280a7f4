"""Takes connections from listening sockets for the gateway's own loop."""

import asyncio
import errno
import logging
import socket
from collections.abc import Callable, Sequence
from functools import partial
from typing import cast

from gateway.server.gateway_loop import GatewayLoop
from gateway.server.socket_transport import SocketTransport

logger = logging.getLogger(__name__)

ACCEPTED_AT_ONCE = 64
"""Connections of the backlog that are accepted before others have their turn."""

PAUSE = 1.0
"""Seconds without new connections after the process or the system had no room for one."""

NO_ROOM = (errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM)


class Acceptor:
    """Makes a transport, and a protocol by `make_protocol`, for every connection that comes."""

    def __init__(
        self,
        loop: GatewayLoop,
        sockets: Sequence[socket.socket],
        make_protocol: Callable[[], asyncio.BaseProtocol],
    ) -> None:
        self._loop = loop
        self._sockets = sockets
        self._make_protocol = make_protocol

    def start(self, backlog: int) -> None:
        """Listen, and accept from now on; raise OSError if another took the address first."""
        for each in self._sockets:
            each.settimeout(0)
            if each.family != socket.AF_UNIX:  # one write for each turn; connections inherit it
                each.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            each.listen(backlog)
            self._loop.add_reader(each, self._accept, each)

    def close(self) -> None:
        """Accept no more."""
        for each in self._sockets:
            self._loop.remove_reader(each)
            each.close()

    def _accept(self, listening: socket.socket) -> None:
        kind = int(listening.family), int(listening.type), listening.proto
        for _ in range(ACCEPTED_AT_ONCE):
            try:
                # what accept() calls: its object for the descriptor costs as much as the call
                descriptor, address = listening._accept()  # type: ignore[attr-defined]  # noqa: SLF001
            except (BlockingIOError, InterruptedError, ConnectionAbortedError):
                return
            except OSError as error:
                if error.errno not in NO_ROOM:
                    raise
                logger.error("no room for new connections: %s", error)  # noqa: TRY400 - says all
                self._loop.remove_reader(listening)
                self._loop.call_later(PAUSE, partial(self._resume, listening))
                return
            sock = socket.SocketType(*kind, descriptor)
            protocol = cast("asyncio.Protocol", self._make_protocol())
            transport = SocketTransport(sock, protocol, self._loop.sockets, self._loop)
            transport.start(address)

    def _resume(self, listening: socket.socket) -> None:
        if listening.fileno() >= 0:
            self._loop.add_reader(listening, self._accept, listening)
