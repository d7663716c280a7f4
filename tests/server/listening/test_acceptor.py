import asyncio
import errno
import socket
from typing import cast

import pytest

from gateway.server.gateway_loop import GatewayLoop
from gateway.server.listening import listener as acceptor_module
from gateway.server.listening.listener import Acceptor
from tests.support.disk.storage import until

pytestmark = pytest.mark.asyncio(loop_factories=["gateway"])


class Protocol(asyncio.Protocol):
    def __init__(self) -> None:
        self.transport: asyncio.BaseTransport | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = transport


class Full(socket.socket):
    """A listening socket for whose connections there is no descriptor, a few times."""

    refusals = 0
    error = errno.EMFILE

    def _accept(self) -> tuple[int, object]:
        if Full.refusals:
            Full.refusals -= 1
            raise OSError(Full.error, "no room")
        return super()._accept()  # type: ignore[misc, no-any-return]  # not in the stubs


def listening() -> Full:
    sock = Full(socket.AF_INET, socket.SOCK_STREAM)
    sock.bind(("127.0.0.1", 0))
    return sock


async def connect(sock: socket.socket) -> None:
    _, writer = await asyncio.open_connection("127.0.0.1", sock.getsockname()[1])
    writer.close()


async def test_without_room_it_tries_again_later(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(acceptor_module, "PAUSE", 0.01)
    loop = cast("GatewayLoop", asyncio.get_running_loop())
    sock = listening()
    made: list[Protocol] = []

    def make() -> Protocol:
        made.append(Protocol())
        return made[-1]

    acceptor = Acceptor(loop, sock, make)
    monkeypatch.setattr(Full, "refusals", 2)
    acceptor.start(10)
    await connect(sock)
    await until(lambda: bool(made and made[0].transport))
    acceptor.close()
    for protocol in made:
        cast("asyncio.Transport", protocol.transport).abort()


async def test_what_is_written_leaves_at_once() -> None:
    loop = cast("GatewayLoop", asyncio.get_running_loop())
    sock = listening()
    protocol = Protocol()
    acceptor = Acceptor(loop, sock, lambda: protocol)
    acceptor.start(10)
    await connect(sock)
    await until(lambda: protocol.transport is not None)
    transport = cast("asyncio.Transport", protocol.transport)
    accepted = transport.get_extra_info("socket")
    assert accepted.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY)
    assert accepted.gettimeout() == 0
    transport.abort()
    acceptor.close()


async def test_a_pause_that_outlives_the_listener_is_harmless(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(acceptor_module, "PAUSE", 0.01)
    loop = cast("GatewayLoop", asyncio.get_running_loop())
    sock = listening()
    monkeypatch.setattr(Full, "refusals", 1)
    acceptor = Acceptor(loop, sock, Protocol)
    acceptor.start(10)
    await connect(sock)
    await until(lambda: Full.refusals == 0)
    acceptor.close()
    await asyncio.sleep(0.05)


async def test_any_other_error_is_a_mistake_that_asyncio_reports(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    loop = cast("GatewayLoop", asyncio.get_running_loop())
    reported: list[object] = []
    loop.set_exception_handler(lambda _, context: reported.append(context["exception"]))
    sock = listening()
    monkeypatch.setattr(Full, "refusals", 1)
    monkeypatch.setattr(Full, "error", errno.EBADMSG)
    acceptor = Acceptor(loop, sock, Protocol)
    acceptor.start(10)
    await connect(sock)
    await until(lambda: bool(reported))
    acceptor.close()


@pytest.mark.parametrize("late", [False, True])
async def test_a_mistake_of_ours_ends_a_new_connection_alone(
    caplog: pytest.LogCaptureFixture, *, late: bool
) -> None:
    loop = cast("GatewayLoop", asyncio.get_running_loop())
    sock = listening()
    made: list[Protocol] = []

    class Faulty(Protocol):
        def connection_made(self, transport: asyncio.BaseTransport) -> None:
            raise RuntimeError("a mistake")

    def make() -> Protocol:
        if not made and not late:
            made.append(Protocol())
            raise RuntimeError("a mistake")
        made.append(Protocol() if made else Faulty())
        return made[-1]

    acceptor = Acceptor(loop, sock, make)
    acceptor.start(10)
    reader, writer = await asyncio.open_connection("127.0.0.1", sock.getsockname()[1])
    assert await reader.read() == b""
    writer.close()
    (record,) = caplog.records
    assert record.exc_info is not None
    await connect(sock)
    await until(lambda: made[-1].transport is not None)
    cast("asyncio.Transport", made[-1].transport).abort()
    acceptor.close()
