"""A listener: an address at which clients connect, and what uses its port otherwise."""

import asyncio
import errno
import logging
import os
import socket
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from gateway.access.access import OPEN, AccessPolicy
from gateway.broker.connecting.connection_info import Authenticator
from gateway.errors import StartError
from gateway.mqtt.reason_codes import ReasonCode
from gateway.server.gateway_loop import GatewayLoop
from gateway.server.listening.connection_limits import ConnectionLimits, ProcessConnections
from gateway.server.listening.connections import Connections
from gateway.server.listening.unix_socket import bind_unix_socket, remove_unix_socket
from gateway.server.socket_selector import READ
from gateway.server.socket_transport import SocketTransport
from gateway.server.transport import address_name
from gateway.server.transport_stack import TransportStack
from gateway.server.turn import Turn
from gateway.settings.listener import ListenerSettings

if TYPE_CHECKING:
    import ssl


BACKLOG = 1024
"""Connections that the kernel queues until they are accepted, as when a whole fleet reconnects."""

CLOSE_TIMEOUT = 1.0
"""Seconds that clients have at a stop to read the last answers."""

POLL_INTERVAL = 0.01

PROBES = (
    (socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1),
    (socket.IPPROTO_TCP, socket.TCP_KEEPIDLE, 300),
    (socket.IPPROTO_TCP, socket.TCP_KEEPINTVL, 30),
    (socket.IPPROTO_TCP, socket.TCP_KEEPCNT, 4),
)
"""TCP keep alive in seconds, after 5 minutes of silence: for clients without MQTT keep alive."""


class Listener:
    """Accepts connections at one address and tracks them.

    `stack.tls` can be replaced; new connections use the new one.
    """

    def __init__(
        self,
        settings: ListenerSettings,
        authenticator: Authenticator,
        turn: Turn,
        *,
        tls: "ssl.SSLContext | None" = None,
        process: ProcessConnections | None = None,
        access: AccessPolicy = OPEN,
    ) -> None:
        self.settings = settings
        self.port = settings.port
        broker = turn.broker
        self.stack = TransportStack(
            settings,
            tls,
            broker.counters,
            settings.maximum_packet_size or broker.settings.maximum_packet_size,
            broker.settings.connect_timeout,
            broker.memory,
        )
        limits = ConnectionLimits(self.address, settings, broker.counters, process)
        self._at_once = min(ACCEPTED_AT_ONCE, limits.least_at_once)
        self.connections = Connections(settings, authenticator, turn, self.stack, limits, access)
        self._server: asyncio.Server | None = None
        self._unix_socket: socket.socket | None = None
        self._acceptors: list[Acceptor] = []

    @property
    def address(self) -> str:
        """Its address, for people."""
        settings = self.settings
        if settings.path is not None:
            return settings.path
        return address_name((settings.host, self.port))

    @property
    def description(self) -> str:
        """Its address and protocols."""
        words = [
            word
            for word, used in (("TLS", self.stack.tls), ("WebSocket", self.settings.websocket))
            if used
        ]
        return f"{self.address} ({' and '.join(words)})" if words else self.address

    async def bind(self) -> None:
        """Reserve the address, without accepting; raise StartError if that fails."""
        loop = asyncio.get_running_loop()
        try:
            if self.settings.path is not None:
                path, mode = Path(self.settings.path), self.settings.mode
                self._unix_socket = bind_unix_socket(path, mode, BACKLOG)
                self._server = await loop.create_unix_server(
                    self.connections.accept,
                    sock=self._unix_socket,
                    backlog=self._at_once,
                    start_serving=False,
                )
                return
            self._server = await loop.create_server(
                self.connections.accept,
                self.settings.host,
                self.port,
                backlog=self._at_once,
                start_serving=False,
            )
        except OSError as error:
            raise self._cannot_listen(error) from error
        for each in self._server.sockets:
            for probe in PROBES:
                each.setsockopt(*probe)
        self.port = self._server.sockets[0].getsockname()[1]

    async def serve(self) -> None:
        """Accept connections from now on; raise StartError if another took the address first."""
        if self._server is None:
            return
        loop = asyncio.get_running_loop()
        try:
            if isinstance(loop, GatewayLoop):
                for each in self._server.sockets:
                    acceptor = Acceptor(loop, each.dup(), self.connections.accept, self._at_once)
                    self._acceptors.append(acceptor)
                    acceptor.start(BACKLOG)
                return
            await self._server.start_serving()
            for each in self._server.sockets:
                with each.dup() as same:
                    same.listen(BACKLOG)
        except OSError as error:
            raise self._cannot_listen(error) from error

    def change(
        self,
        settings: ListenerSettings,
        authenticator: Authenticator,
        tls: "ssl.SSLContext | None",
        access: AccessPolicy,
    ) -> None:
        """Apply these settings, of the same address, to new connections."""
        self.settings = settings
        self.stack.change(settings, tls)
        self.connections.change(settings, authenticator, access)
        self.connections.limits.change(settings)

    def release(self) -> None:
        """Stop accepting and free the address; connected clients stay."""
        if self._server is not None:
            self._server.close()
            self._server = None
        for acceptor in self._acceptors:
            acceptor.close()
        self._acceptors.clear()
        if self._unix_socket is not None:
            remove_unix_socket(Path(self.address), self._unix_socket)
            self._unix_socket = None

    async def close(
        self,
        code: ReasonCode = ReasonCode.SERVER_SHUTTING_DOWN,
        reason: str = "the gateway stops",
    ) -> None:
        """Stop accepting, tell every client why its connection ends, and close it.

        Remaining messages and wills are handled by the turns that follow.
        """
        self.release()
        self.stack.abort_handshakes()
        for client in list(self.connections.clients):
            client.disconnect(code, reason)
        await self.wait_closed()
        self.connections.limits.end()

    async def wait_closed(self) -> None:
        """Wait until the last clients have read their output, or are too slow."""
        loop = asyncio.get_running_loop()
        deadline = loop.time() + CLOSE_TIMEOUT
        while self.connections.clients:
            if loop.time() >= deadline or not any(
                each.unfinished for each in self.connections.clients
            ):
                self.connections.abort_all()
            await asyncio.sleep(POLL_INTERVAL)

    def _cannot_listen(self, error: OSError) -> StartError:
        # asyncio repeats the address in its own text; a resolver's errors have negative numbers
        number = error.errno or 0
        reason = os.strerror(number) if number > 0 else error.strerror
        text = f"cannot listen on {self.address}: {reason or error}"
        if number == errno.EADDRINUSE:
            by = holder_of(self.port)
            text += f" by {by}" if by else ""
            text += "; another port: --port, or `port` of the [[listener]]"
        return StartError(text)


PROC = Path("/proc")

LISTENING = "0A"
"""The state of a listening socket in /proc/net/tcp."""


def holder_of(port: int, proc: Path = PROC) -> str:
    """Return which process listens on a port, as `name (process 123)`; "" if that is unknown."""
    wanted = {f"socket:[{inode}]" for inode in _inodes(port, proc)}
    for folder in proc.glob("[0-9]*") if wanted else ():
        with suppress(OSError):  # a process that ended, or another user's
            if any(str(file.readlink()) in wanted for file in (folder / "fd").iterdir()):
                name = (folder / "comm").read_text(encoding="utf-8", errors="replace").strip()
                return f"{name} (process {folder.name})"
    return ""


def _inodes(port: int, proc: Path) -> Iterator[str]:
    """Yield the inodes of the sockets that listen on a port, whatever their address."""
    for table in ("tcp", "tcp6"):
        with suppress(OSError):
            for line in (proc / "net" / table).read_text(encoding="ascii").splitlines()[1:]:
                fields = line.split()
                if fields[3] == LISTENING and int(fields[1].rpartition(":")[2], 16) == port:
                    yield fields[9]


logger = logging.getLogger(__name__)

ACCEPTED_AT_ONCE = 64
"""Connections of the backlog that are accepted in a row."""

PAUSE = 1.0
"""Seconds without accepting after the process or the system reached a limit."""

EXHAUSTED = (errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM)


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
            if error.errno in EXHAUSTED:
                self._pause(error)
            else:
                context = {"message": "cannot accept", "exception": error}
                self._loop.call_exception_handler(context)

    def _begin(self, sock: socket.SocketType, address: object) -> None:
        try:
            protocol = self._make_protocol()
            SocketTransport(sock, protocol, self._sockets, self._loop).start(address)
        except Exception:
            # the transport's border (ARCHITECTURE.md): a fault of ours ends only this connection
            logger.exception("unexpected error; closing a new connection")
            self._sockets.serve(sock.fileno(), self, 0)
            sock.close()

    def _pause(self, error: OSError) -> None:
        logger.error("no capacity for new connections: %s", error)
        self._watch(0)
        self._loop.call_later(PAUSE, self._watch, READ)

    def _watch(self, events: int) -> None:
        descriptor = self._listening.fileno()
        if descriptor >= 0:  # not closed meanwhile
            self._sockets.serve(descriptor, self, events)
