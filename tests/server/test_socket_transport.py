import asyncio
import socket
import struct
from collections.abc import Callable, Iterator
from typing import cast

import pytest

from gateway.server import socket_selector, socket_transport
from gateway.server.gateway_loop import GatewayLoop
from gateway.server.socket_transport import DEFAULT_HIGH, JOINED, SMALL, SocketTransport
from tests.support.disk.storage import until

pytestmark = pytest.mark.asyncio(loop_factories=["gateway"])


class Protocol(asyncio.Protocol):
    """Notes what it is told."""

    def __init__(self) -> None:
        self.reported: list[object] = []
        self.keep_open = False
        self.end: Exception | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert type(cast("object", transport)) is SocketTransport
        self.reported.append("made")

    def data_received(self, data: bytes) -> None:
        self.reported.append(data)

    def eof_received(self) -> bool:
        self.reported.append("eof")
        return self.keep_open

    def pause_writing(self) -> None:
        self.reported.append("pause")

    def resume_writing(self) -> None:
        self.reported.append("resume")

    def connection_lost(self, error: Exception | None) -> None:
        self.end = error
        self.reported.append("lost")


class Ends:
    """A transport with its protocol, and the socket of the other end."""

    def __init__(self) -> None:
        listening = socket.create_server(("127.0.0.1", 0))
        self.peer = socket.create_connection(listening.getsockname())
        self.peer.settimeout(60)
        sock, _ = listening.accept()
        listening.close()
        loop = cast("GatewayLoop", asyncio.get_running_loop())
        self.protocol = Protocol()
        self.transport = SocketTransport(sock, self.protocol, loop.sockets, loop)
        self.transport.start()

    async def reported(self, what: object) -> None:
        await until(lambda: what in self.protocol.reported)

    def reset(self) -> None:
        """Close the other end so that the kernel sends RST."""
        self.peer.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.peer.close()


@pytest.fixture
async def ends() -> Ends:
    return Ends()


@pytest.fixture
def both(ends: Ends) -> Iterator[Ends]:
    yield ends
    ends.peer.close()


async def test_bytes_go_both_ways(both: Ends) -> None:
    both.peer.send(b"hello")
    await both.reported(b"hello")
    both.transport.write(b"answer")
    assert both.peer.recv(100) == b"answer"
    assert both.transport.get_extra_info("peername") == both.peer.getsockname()
    assert both.transport.get_extra_info("socket").fileno() > 0
    assert both.transport.get_extra_info("peercert", "none") == "none"
    both.transport.close()
    await both.reported("lost")
    assert both.protocol.end is None
    assert both.transport.get_extra_info("peername") is None


async def test_an_address_that_is_known_is_not_asked_for() -> None:
    asked: list[object] = []

    class Curious(Protocol):
        def connection_made(self, transport: asyncio.BaseTransport) -> None:
            asked.append(transport.get_extra_info("peername"))

    ours, theirs = socket.socketpair()
    loop = cast("GatewayLoop", asyncio.get_running_loop())
    protocol = Curious()
    transport = SocketTransport(ours, protocol, loop.sockets, loop)
    transport.start(("somewhere", 1))
    assert asked == [("somewhere", 1)]
    assert transport.get_extra_info("peername") == ""  # a pair's ends have no names
    theirs.close()
    await until(lambda: "lost" in protocol.reported)


async def test_nothing_is_heard_between_close_and_the_end(both: Ends) -> None:
    both.peer.send(b"too late")
    both.transport.close()
    await both.reported("lost")
    assert both.protocol.reported == ["made", "lost"]


async def test_a_slow_peer_pauses_the_protocol_and_gets_everything(both: Ends) -> None:
    both.transport.set_write_buffer_limits()
    data = bytes(range(256)) * 40_000
    both.transport.write(data)
    assert both.protocol.reported[-1] == "pause"
    both.transport.write(b"end")
    assert both.transport.get_write_buffer_size() > DEFAULT_HIGH
    both.transport.close()
    both.transport.write(b"nothing behind the end")
    received = bytearray()
    while len(received) < len(data) + 3:
        received += await asyncio.to_thread(both.peer.recv, 1 << 20)
    assert received == data + b"end"
    await both.reported("lost")
    assert "resume" in both.protocol.reported
    assert both.peer.recv(10) == b""


async def test_pieces_of_any_size_wait_in_order(
    both: Ends, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(socket_transport, "MAXIMUM_PIECES", 2)
    sizes = [6_000_000, 10, 20, JOINED, 30, JOINED - 1, 40, 3 * JOINED, JOINED]
    pieces = [bytes([65 + number]) * size for number, size in enumerate(sizes)]
    for piece in pieces:
        both.transport.write(piece)
    assert both.transport._unsent is not None
    assert len(both.transport._unsent) < len(pieces)  # small ones share a place
    both.transport.close()
    received = bytearray()
    while chunk := await asyncio.to_thread(both.peer.recv, 1 << 20):
        received += chunk
    assert received == b"".join(pieces)
    assert both.transport.get_write_buffer_size() == 0


async def test_what_waits_is_not_copied(both: Ends) -> None:
    data = bytearray(40_000_000)
    both.transport.write(data)
    with pytest.raises(BufferError):  # it is the transport's until it is sent
        data += b"more"
    both.transport.abort()
    await both.reported("lost")


async def test_reading_pauses_and_goes_on(both: Ends) -> None:
    both.transport.pause_reading()
    assert not both.transport.is_reading()
    both.peer.send(b"later")
    await asyncio.sleep(0.01)
    assert both.protocol.reported == ["made"]
    both.transport.resume_reading()
    await both.reported(b"later")
    both.transport.close()
    both.transport.resume_reading()
    assert not both.transport.is_reading()
    await both.reported("lost")


@pytest.fixture
async def put_off(monkeypatch: pytest.MonkeyPatch) -> list[Callable[[], None]]:
    """Give what goes on later; behind a poll there is time for the first socket alone."""
    monkeypatch.setattr(socket_selector, "READING", 0.0)
    pending: list[Callable[[], None]] = []
    cast("GatewayLoop", asyncio.get_running_loop()).sockets.later = pending.append
    return pending


async def two_that_sent(data: bytes) -> list[Ends]:
    """Return two connections on which this has come before one poll."""
    ends = [Ends(), Ends()]
    for each in ends:
        each.peer.send(data)
    await until(lambda: any(data in each.protocol.reported for each in ends))
    return sorted(ends, key=lambda each: data not in each.protocol.reported)


async def end_all(ends: list[Ends]) -> None:
    for each in ends:
        each.transport.abort()
        await each.reported("lost")
        each.peer.close()


async def test_others_have_their_turn_before_the_second_that_sent_much(
    put_off: list[Callable[[], None]],
) -> None:
    much = bytes(SMALL + 1)
    _, second = ends = await two_that_sent(much)
    (go_on,) = put_off
    assert second.protocol.reported == ["made"]
    for wants in (True, False, True):
        (second.transport.resume_reading if wants else second.transport.pause_reading)()
        assert second.transport.is_reading() is wants
    go_on()
    assert second.protocol.reported == ["made", much]
    second.peer.send(b"last")
    await second.reported(b"last")
    await end_all(ends)


async def test_few_bytes_are_handled_at_once(put_off: list[Callable[[], None]]) -> None:
    few = bytes(SMALL)
    _, second = ends = await two_that_sent(few)
    await second.reported(few)
    assert put_off == []
    await end_all(ends)


@pytest.mark.parametrize("how", ["ended", "paused"])
async def test_what_was_put_off_is_not_read_meanwhile(
    put_off: list[Callable[[], None]], how: str
) -> None:
    much = bytes(SMALL + 1)
    _, second = ends = await two_that_sent(much)
    if how == "ended":
        second.transport.abort()
    else:
        second.transport.pause_reading()
    put_off[0]()
    assert second.protocol.reported == ["made"]
    if how == "paused":
        second.transport.resume_reading()
        await second.reported(much)
    await end_all(ends)


async def test_a_connection_that_is_reset_is_no_reason_to_wait(
    put_off: list[Callable[[], None]],
) -> None:
    ends = [Ends(), Ends()]
    for each in ends:
        each.reset()
    for each in ends:
        await each.reported("lost")
    assert put_off == []


@pytest.mark.parametrize("keep_open", [False, True])
async def test_the_peer_s_end_closes_unless_the_protocol_goes_on(
    both: Ends, keep_open: bool
) -> None:
    both.protocol.keep_open = keep_open
    both.peer.shutdown(socket.SHUT_WR)
    await both.reported("eof")
    assert both.transport.is_closing() is not keep_open
    if keep_open:
        both.transport.write(b"still")
        assert both.peer.recv(10) == b"still"
        both.transport.abort()
    await both.reported("lost")
    assert both.protocol.reported.count("lost") == 1


async def test_our_half_is_closed_once_everything_is_written(both: Ends) -> None:
    assert both.transport.can_write_eof()
    data = bytes(5_000_000)
    both.transport.write(data)
    both.transport.write_eof()
    both.transport.write_eof()
    both.transport.write(b"nothing behind the end")
    received = 0
    while chunk := await asyncio.to_thread(both.peer.recv, 1 << 20):
        received += len(chunk)
    assert received == len(data)
    both.peer.send(b"heard")
    await both.reported(b"heard")
    both.transport.abort()
    both.transport.abort()
    await both.reported("lost")
    assert both.protocol.reported.count("lost") == 1


async def test_our_half_is_closed_at_once_when_nothing_waits(both: Ends) -> None:
    both.transport.write_eof()
    assert both.peer.recv(10) == b""
    both.transport.abort()
    await both.reported("lost")


async def test_a_reset_is_told_once(both: Ends) -> None:
    both.reset()
    await both.reported("lost")
    assert isinstance(both.protocol.end, ConnectionResetError)
    both.transport.write(b"nobody")
    both.transport.write_eof()
    assert both.protocol.reported.count("lost") == 1


async def test_a_reset_while_bytes_wait_gives_them_up(both: Ends) -> None:
    both.transport.pause_reading()
    both.transport.write(bytes(5_000_000))
    both.reset()
    await both.reported("lost")
    assert isinstance(both.protocol.end, ConnectionError)
    assert both.transport.get_write_buffer_size() == 0


async def test_a_reset_is_found_by_writing(both: Ends) -> None:
    both.transport.pause_reading()
    both.reset()
    await asyncio.sleep(0.01)
    both.transport.write(b"anybody?")
    await both.reported("lost")
    assert isinstance(both.protocol.end, ConnectionError)


async def test_a_half_that_cannot_be_closed_ends_the_connection(both: Ends) -> None:
    both.transport.pause_reading()
    both.reset()
    await asyncio.sleep(0.01)
    both.transport.write_eof()
    await both.reported("lost")
