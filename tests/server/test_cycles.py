"""What a connection leaves is freed with it: nothing is left for Python's garbage collector."""

import asyncio
import gc
from collections import Counter
from pathlib import Path

import pytest
from websockets.server import ServerProtocol

from gateway.server.gateway_loop import GatewayLoop
from gateway.server.socket_transport import SocketTransport
from gateway.server.tls.connection import TlsConnection
from gateway.server.transport import ClientTransport
from gateway.server.websocket.connection import FrameTransport, WebSocketConnection
from tests.support.disk.storage import until
from tests.support.places import KINDS, open_place
from tests.support.processes.certificates import Authority, Pair

OURS = (
    SocketTransport,
    ClientTransport,
    TlsConnection,
    WebSocketConnection,
    FrameTransport,
    ServerProtocol,
)


def left() -> Counter[str]:
    return Counter(type(each).__name__ for each in gc.get_objects() if isinstance(each, OURS))


@pytest.mark.parametrize("sent_disconnect", [True, False])
async def test_nothing_is_left_of_a_connection(
    tmp_path: Path, authority: Authority, server_pair: Pair, *, sent_disconnect: bool
) -> None:
    if not isinstance(asyncio.get_running_loop(), GatewayLoop):
        return  # asyncio's own transports refer to themselves
    found = {}
    gc.collect()
    gc.disable()
    try:
        for kind in KINDS:
            place = await open_place(kind, tmp_path, authority, server_pair)
            before = left()
            client = await place.connect("c")
            assert left()["SocketTransport"] == before["SocketTransport"] + 1
            if not sent_disconnect:
                next(iter(place.server.listener.connections.clients)).abort()
            await client.close()
            counters = place.server.counters
            await until(lambda: counters.count("tidegate/connections/open") == 0)  # noqa: B023
            for _ in range(5):
                await asyncio.sleep(0)
            found[kind] = left() - before
            await place.close()
    finally:
        gc.enable()
    assert found == {kind: Counter() for kind in KINDS}
