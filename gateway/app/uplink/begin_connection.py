"""Serves the uplink's socket as those of clients are served."""

import asyncio
import socket
import ssl

from gateway.server.gateway_loop import GatewayLoop
from gateway.server.socket_transport import SocketTransport
from gateway.uplink.begin_connection import begin_connection as begin_by_asyncio


async def begin_connection(
    sock: socket.socket, protocol: asyncio.Protocol, tls: ssl.SSLContext | None, host: str
) -> None:
    """Have the gateway's own selector serve the socket, or asyncio, which knows TLS.

    Between two messages the loop need not turn then: that is a tenth of what a message costs.
    """
    loop = asyncio.get_running_loop()
    if tls is None and isinstance(loop, GatewayLoop):
        if sock.family != socket.AF_UNIX:  # else a small packet waits for the ACK of the last one
            sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        SocketTransport(sock, protocol, loop.sockets, loop).start()
    else:
        await begin_by_asyncio(sock, protocol, tls, host)
