import asyncio
import socket
from collections.abc import Callable

import pytest

from gateway.app.uplink.begin_connection import begin_connection
from gateway.server.gateway_loop import GatewayLoop
from gateway.server.socket_transport import SocketTransport


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


async def _meet() -> Greeter:
    ours, theirs = socket.socketpair()
    ours.setblocking(False)
    greeter = Greeter()
    await begin_connection(ours, greeter, None, "")
    with theirs:
        theirs.settimeout(5.0)
        loop = asyncio.get_running_loop()
        assert await loop.run_in_executor(None, theirs.recv, 100) == b"hello"
        theirs.sendall(b"well met")
    await greeter.ended.wait()
    return greeter


@pytest.mark.parametrize("make_loop", [GatewayLoop, asyncio.new_event_loop])
def test_a_socket_is_served_by_the_gateways_loop_and_by_any_other(
    make_loop: Callable[[], asyncio.AbstractEventLoop],
) -> None:
    with asyncio.Runner(loop_factory=make_loop) as runner:
        greeter = runner.run(_meet())
    assert (greeter.received, greeter.own) == (b"well met", make_loop is GatewayLoop)
