import asyncio
import socket
from collections.abc import Callable

import pytest

from gateway.app.uplink.links import begin_connection
from gateway.server.gateway_loop import GatewayLoop
from gateway.server.socket_transport import SocketTransport
from tests.support.waiting import SECONDS


class Greeter(asyncio.Protocol):
    def __init__(self) -> None:
        self.received = b""
        self.ended = asyncio.Event()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.own = isinstance(transport, SocketTransport)
        self.transport = transport
        assert hasattr(transport, "write")
        transport.write(b"hello")

    def data_received(self, data: bytes) -> None:
        self.received += data

    def connection_lost(self, error: Exception | None) -> None:
        self.ended.set()


async def _meet(family: socket.AddressFamily) -> Greeter:
    ours, theirs = _pair(family)
    ours.setblocking(False)
    greeter = Greeter()
    await begin_connection(ours, greeter, None, "")
    if family == socket.AF_INET:
        assert ours.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY)
    with theirs:
        theirs.settimeout(SECONDS)
        loop = asyncio.get_running_loop()
        assert await loop.run_in_executor(None, theirs.recv, 100) == b"hello"
        theirs.sendall(b"well met")
    await greeter.ended.wait()
    return greeter


def _pair(family: socket.AddressFamily) -> tuple[socket.socket, socket.socket]:
    if family == socket.AF_UNIX:
        return socket.socketpair()
    with socket.create_server(("127.0.0.1", 0)) as server:
        ours = socket.create_connection(server.getsockname())
        return ours, server.accept()[0]


@pytest.mark.parametrize("family", [socket.AF_INET, socket.AF_UNIX])
@pytest.mark.parametrize("make_loop", [GatewayLoop, asyncio.new_event_loop])
def test_a_socket_is_served_by_the_gateways_loop_and_by_any_other(
    make_loop: Callable[[], asyncio.AbstractEventLoop], family: socket.AddressFamily
) -> None:
    with asyncio.Runner(loop_factory=make_loop) as runner:
        greeter = runner.run(_meet(family))
    assert (greeter.received, greeter.own) == (b"well met", make_loop is GatewayLoop)
