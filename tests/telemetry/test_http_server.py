import asyncio
import contextlib
from collections.abc import AsyncIterator
from dataclasses import replace
from functools import partial

import pytest

from gateway.counters import Counters
from gateway.errors import StartError
from gateway.telemetry import http_server as http_exchange
from gateway.telemetry.http_server import (
    MAXIMUM_CONNECTIONS,
    MAXIMUM_OF_ADDRESS,
    MAXIMUM_REQUEST,
    HttpServer,
    Page,
    Request,
)
from tests.support.disk.storage import until

GET = b"GET /page HTTP/1.1\r\nHost: localhost\r\n\r\n"


@pytest.fixture
async def server() -> AsyncIterator[HttpServer]:
    """Give an open server with one page."""
    opened = HttpServer("127.0.0.1", 0, {"/page": lambda: Page("öffen\n")}, Counters())
    await opened.bind()
    await opened.serve()
    yield opened
    await opened.close()


def count(server: HttpServer, name: str) -> int:
    return server._counters.count(f"tidegate/metrics/{name}")


async def answer(server: HttpServer, request: bytes) -> bytes:
    """Return all that is answered, up to the end of the connection."""
    reader, writer = await asyncio.open_connection("127.0.0.1", server.port)
    writer.write(request)
    try:
        return await reader.read()
    finally:
        writer.close()


async def test_a_page(server: HttpServer) -> None:
    head, _, body = (await answer(server, GET)).partition(b"\r\n\r\n")
    assert head.split(b"\r\n") == [
        b"HTTP/1.1 200 OK",
        b"Content-Type: text/plain; charset=utf-8",
        b"Content-Length: 7",
        b"Cache-Control: no-store",
        b"Connection: close",
    ]
    assert body.decode() == "öffen\n"
    await until(lambda: count(server, "requests") == 1)
    assert count(server, "refused") == 0


@pytest.mark.parametrize(
    ("request_", "status"),
    [
        (GET.replace(b"/page", b"/other"), b"404 Not Found"),
        (GET.replace(b"GET", b"DELETE"), b"405 Method Not Allowed"),
        (GET.replace(b"1.1", b"3.0"), b"505 HTTP Version Not Supported"),
        (GET.replace(b"Host", b"Guest"), b"400 Bad Request"),
        (b"POST /page HTTP/1.1\r\nHost: localhost\r\nContent-Length: 3\r\n\r\nabc", b"405 Method"),
        (b"\x16\x03\x01 TLS\r\n\r\n", b"400 Bad Request"),
    ],
)
async def test_what_gets_no_page(server: HttpServer, request_: bytes, status: bytes) -> None:
    answered = await answer(server, request_)
    assert answered.startswith(b"HTTP/1.1 " + status)
    assert (b"\r\nAllow: GET, HEAD\r\n" in answered) == status.startswith(b"405")
    await until(lambda: count(server, "requests") == 1)


async def test_an_answer_to_head_has_no_body(server: HttpServer) -> None:
    answered = await answer(server, GET.replace(b"GET /page", b"HEAD /other"))
    assert answered.startswith(b"HTTP/1.1 404 Not Found")
    assert b"\r\nContent-Length: 10\r\n" in answered
    assert answered.endswith(b"\r\n\r\n")


async def test_a_request_in_pieces(server: HttpServer) -> None:
    reader, writer = await asyncio.open_connection("127.0.0.1", server.port)
    for byte in GET:
        writer.write(bytes([byte]))
        await writer.drain()
        await asyncio.sleep(0)
    assert (await reader.read()).startswith(b"HTTP/1.1 200 OK")
    writer.close()


async def test_the_head_is_bounded(server: HttpServer) -> None:
    field = b"a: " + MAXIMUM_REQUEST * b"x" + b"\r\n"
    answered = await answer(server, GET[:-2] + field + b"\r\n")
    assert answered.startswith(b"HTTP/1.1 431 Request Header Fields Too Large")


async def test_only_one_request_is_answered(server: HttpServer) -> None:
    assert (await answer(server, GET + GET)).count(b"HTTP/1.1 ") == 1


Opened = tuple[asyncio.StreamReader, asyncio.StreamWriter]


async def idle(server: HttpServer, count: int, address: str = "127.0.0.1") -> list[Opened]:
    """Return connections from an address that say nothing, once the server has seen them."""
    opened = []
    for _ in range(count):
        one = await asyncio.open_connection("127.0.0.1", server.port, local_addr=(address, 0))
        opened.append(one)
        port = one[1].get_extra_info("sockname")[1]
        await until(partial(server_knows, server, port))
    return opened


def server_knows(server: HttpServer, port: int) -> bool:
    """Return whether the server has seen a connection from this port."""
    return any(each._transport.get_extra_info("peername")[1] == port for each in server._exchanges)


async def closed(opened: Opened) -> bool:
    """Return whether the server has ended the connection."""
    with contextlib.suppress(ConnectionError):
        return await opened[0].read() == b""
    return True


async def test_connections_of_one_address_are_bounded_and_the_oldest_goes(
    server: HttpServer,
) -> None:
    held = await idle(server, MAXIMUM_OF_ADDRESS)
    assert (await answer(server, GET)).startswith(b"HTTP/1.1 200 OK")
    assert await closed(held[0])
    assert count(server, "refused") == 1
    reader, writer = held[1]
    writer.write(GET)
    assert (await reader.read()).startswith(b"HTTP/1.1 200 OK")
    for _, writer in held:
        writer.close()


@pytest.mark.uncovered
async def test_idle_connections_keep_nobody_out_however_often_they_are_renewed(
    server: HttpServer,
) -> None:
    """Slowloris: half a request on each, all of them renewed at once when one is closed."""
    over = asyncio.Event()

    async def hold() -> None:
        while not over.is_set():
            opened = await asyncio.open_connection("127.0.0.1", server.port)
            opened[1].write(GET[:20])
            with contextlib.suppress(ConnectionError):
                await opened[0].read()
            opened[1].close()

    holders = [asyncio.create_task(hold()) for _ in range(2 * MAXIMUM_CONNECTIONS)]
    await until(lambda: len(server._exchanges) == MAXIMUM_OF_ADDRESS)
    for _ in range(8):
        assert (await answer(server, GET)).startswith(b"HTTP/1.1 200 OK")
    over.set()
    await server.close()
    await asyncio.gather(*holders, return_exceptions=True)


async def test_connections_from_many_addresses_leave_room_for_others(server: HttpServer) -> None:
    held = []
    for last in range(2, 5):  # 96 connections of three addresses
        held += await idle(server, MAXIMUM_OF_ADDRESS, f"127.0.0.{last}")
    await until(lambda: len(server._exchanges) <= MAXIMUM_CONNECTIONS)
    blocks = [exchange.block for exchange in server._exchanges]
    assert min(blocks.count(block) for block in blocks) > 1
    assert (await answer(server, GET)).startswith(b"HTTP/1.1 200 OK")
    for _, writer in held:
        writer.close()


async def test_who_was_answered_goes_before_who_waits(server: HttpServer) -> None:
    first, *others = await idle(server, MAXIMUM_OF_ADDRESS)
    others[-1][1].write(GET)
    assert (await others[-1][0].read()).startswith(b"HTTP/1.1 200 OK")  # and does not close
    (one,) = await idle(server, 1)
    one[1].write(GET)
    assert (await one[0].read()).startswith(b"HTTP/1.1 200 OK")
    first[1].write(GET)
    assert (await first[0].read()).startswith(b"HTTP/1.1 200 OK")
    for _, writer in (first, *others, one):
        writer.close()


async def test_a_foreign_host_is_refused(
    server: HttpServer, caplog: pytest.LogCaptureFixture
) -> None:
    named = HttpServer("127.0.0.1", 0, {}, Counters(), ["barn.lan"])
    request = Request("GET", "/page", "")
    hosts = ("attacker.example", "localhost.attacker.example", "192.168.1.5:80", "", "a b")
    for host in hosts:
        answered = await answer(server, GET.replace(b"localhost", host.encode()))
        assert answered.startswith(b"HTTP/1.1 421 Misdirected Request"), host
    target = b"http://attacker.example/page"
    assert b" 421 " in await answer(server, GET.replace(b"/page", target))
    assert count(server, "foreign_hosts") == len(hosts) + 1
    assert caplog.text.count("'attacker.example', which [metrics] hosts") == 1  # once a minute
    for host in ("127.0.0.1", "[::1]:9234", "LOCALHOST:1"):
        assert b" 200 " in await answer(server, GET.replace(b"localhost", host.encode()))
    assert named._is_for_us(replace(request, host="barn.lan:9234"))
    old = b"GET /page HTTP/1.0\r\n\r\n"
    assert b" 200 " in await answer(server, old)


async def test_who_says_nothing_is_cut_off(
    server: HttpServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(http_exchange, "EXCHANGE_TIMEOUT", 0.05)
    with contextlib.suppress(ConnectionError):
        assert await answer(server, GET[:-1]) == b""
    assert count(server, "refused") == 1


async def test_bytes_that_trickle_in_renew_nothing(
    server: HttpServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(http_exchange, "EXCHANGE_TIMEOUT", 0.2)
    reader, writer = await asyncio.open_connection("127.0.0.1", server.port)
    writer.write(GET[:-2])
    ended = asyncio.create_task(closed((reader, writer)))
    while not ended.done():
        writer.write(b"a: b\r\n")
        await asyncio.sleep(0.01)
    assert await ended
    writer.close()
    assert count(server, "refused") == 1


async def test_who_does_not_close_after_the_answer_is_cut_off(
    server: HttpServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(http_exchange, "CLOSE_TIMEOUT", 0.05)
    reader, writer = await asyncio.open_connection("127.0.0.1", server.port)
    writer.write(GET)
    assert (await reader.read()).startswith(b"HTTP/1.1 200 OK")
    writer.write(GET)  # dropped
    await until(lambda: not server._exchanges)
    assert (count(server, "requests"), count(server, "refused")) == (1, 0)
    writer.close()


async def test_who_does_not_read_is_cut_off(
    server: HttpServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(http_exchange, "EXCHANGE_TIMEOUT", 0.2)
    server.pages = {"/page": lambda: Page(32 * 1024 * 1024 * "x")}
    _, writer = await asyncio.open_connection("127.0.0.1", server.port, limit=1024)
    writer.write(GET)
    await until(lambda: count(server, "refused") == 1)
    await until(lambda: not server._exchanges)
    writer.close()


async def test_who_leaves_in_the_middle_is_forgotten(server: HttpServer) -> None:
    _, writer = await asyncio.open_connection("127.0.0.1", server.port)
    writer.write(GET[:10])
    writer.close()
    await until(lambda: count(server, "refused") == 1)
    await until(lambda: not server._exchanges)


async def test_the_stop_waits_for_nobody(server: HttpServer) -> None:
    reader, writer = await asyncio.open_connection("127.0.0.1", server.port)
    await until(lambda: bool(server._exchanges))
    await server.close()
    with contextlib.suppress(ConnectionError):
        assert await reader.read() == b""
    writer.close()
    with pytest.raises(ConnectionError):
        await asyncio.open_connection("127.0.0.1", server.port)


async def test_an_address_that_cannot_be_had(server: HttpServer) -> None:
    second = HttpServer("127.0.0.1", server.port, {}, Counters())
    with pytest.raises(StartError, match=f"at 127.0.0.1:{server.port}: Address already in use"):
        await second.bind()


async def test_an_address_that_another_takes_first() -> None:
    first, second = (HttpServer("127.0.0.1", 0, {}, Counters()) for _ in range(2))
    await second.serve()  # not bound: there is nothing to open
    await first.bind()
    second.port = first.port
    await second.bind()
    await first.serve()
    with pytest.raises(StartError, match="Address already in use"):
        await second.serve()
    await first.close()
    await second.close()


def test_the_address_as_in_a_url() -> None:
    assert HttpServer("::1", 1, {}, Counters()).address == "[::1]:1"
