import asyncio
import contextlib
from collections.abc import AsyncIterator

import pytest

from gateway.counters import Counters
from gateway.errors import StartError
from gateway.telemetry import http_door
from gateway.telemetry.http_door import MAXIMUM_CONNECTIONS, MAXIMUM_REQUEST, HttpDoor, Page
from tests.support.storage import until

GET = b"GET /page HTTP/1.1\r\nHost: here\r\n\r\n"


@pytest.fixture
async def door() -> AsyncIterator[HttpDoor]:
    """Give an open door with one page."""
    opened = HttpDoor("127.0.0.1", 0, {"/page": lambda: Page("öffen\n")}, Counters())
    await opened.bind()
    await opened.serve()
    yield opened
    await opened.close()


def count(door: HttpDoor, name: str) -> int:
    return door._counters.count(f"tidegate/metrics/{name}")


async def answer(door: HttpDoor, request: bytes) -> bytes:
    """Return all that is answered, up to the end of the connection."""
    reader, writer = await asyncio.open_connection("127.0.0.1", door.port)
    writer.write(request)
    try:
        return await reader.read()
    finally:
        writer.close()


async def test_a_page(door: HttpDoor) -> None:
    head, _, body = (await answer(door, GET)).partition(b"\r\n\r\n")
    assert head.split(b"\r\n") == [
        b"HTTP/1.1 200 OK",
        b"Content-Type: text/plain; charset=utf-8",
        b"Content-Length: 7",
        b"Cache-Control: no-store",
        b"Connection: close",
    ]
    assert body.decode() == "öffen\n"
    await until(lambda: count(door, "requests") == 1)
    assert count(door, "refused") == 0


@pytest.mark.parametrize(
    ("request_", "status"),
    [
        (GET.replace(b"/page", b"/other"), b"404 Not Found"),
        (GET.replace(b"GET", b"DELETE"), b"405 Method Not Allowed"),
        (GET.replace(b"1.1", b"3.0"), b"505 HTTP Version Not Supported"),
        (GET.replace(b"Host", b"Guest"), b"400 Bad Request"),
        (b"POST /page HTTP/1.1\r\nHost: a\r\nContent-Length: 3\r\n\r\nabc", b"405 Method"),
        (b"\x16\x03\x01 TLS\r\n\r\n", b"400 Bad Request"),
    ],
)
async def test_what_gets_no_page(door: HttpDoor, request_: bytes, status: bytes) -> None:
    answered = await answer(door, request_)
    assert answered.startswith(b"HTTP/1.1 " + status)
    assert (b"\r\nAllow: GET, HEAD\r\n" in answered) == status.startswith(b"405")
    await until(lambda: count(door, "requests") == 1)


async def test_an_answer_to_head_has_no_body(door: HttpDoor) -> None:
    answered = await answer(door, GET.replace(b"GET /page", b"HEAD /other"))
    assert answered.startswith(b"HTTP/1.1 404 Not Found")
    assert b"\r\nContent-Length: 10\r\n" in answered
    assert answered.endswith(b"\r\n\r\n")


async def test_a_request_in_pieces(door: HttpDoor) -> None:
    reader, writer = await asyncio.open_connection("127.0.0.1", door.port)
    for byte in GET:
        writer.write(bytes([byte]))
        await writer.drain()
        await asyncio.sleep(0)
    assert (await reader.read()).startswith(b"HTTP/1.1 200 OK")
    writer.close()


async def test_the_head_is_bounded(door: HttpDoor) -> None:
    field = b"a: " + MAXIMUM_REQUEST * b"x" + b"\r\n"
    answered = await answer(door, GET[:-2] + field + b"\r\n")
    assert answered.startswith(b"HTTP/1.1 431 Request Header Fields Too Large")


async def test_only_one_request_is_answered(door: HttpDoor) -> None:
    assert (await answer(door, GET + GET)).count(b"HTTP/1.1 ") == 1


async def test_connections_are_bounded(door: HttpDoor) -> None:
    held = [
        await asyncio.open_connection("127.0.0.1", door.port) for _ in range(MAXIMUM_CONNECTIONS)
    ]
    await until(lambda: len(door._exchanges) == MAXIMUM_CONNECTIONS)
    with contextlib.suppress(ConnectionError):
        assert await answer(door, GET) == b""
    assert count(door, "refused") == 1
    reader, writer = held[0]
    writer.write(GET)
    assert (await reader.read()).startswith(b"HTTP/1.1 200 OK")
    await until(lambda: len(door._exchanges) == MAXIMUM_CONNECTIONS - 1)
    assert (await answer(door, GET)).startswith(b"HTTP/1.1 200 OK")
    for _, writer in held:
        writer.close()


async def test_who_says_nothing_is_cut_off(door: HttpDoor, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(http_door, "EXCHANGE_TIMEOUT", 0.05)
    with contextlib.suppress(ConnectionError):
        assert await answer(door, GET[:-1]) == b""
    assert count(door, "refused") == 1


async def test_who_does_not_read_is_cut_off(
    door: HttpDoor, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(http_door, "EXCHANGE_TIMEOUT", 0.2)
    door._pages = {"/page": lambda: Page(32 * 1024 * 1024 * "x")}
    _, writer = await asyncio.open_connection("127.0.0.1", door.port, limit=1024)
    writer.write(GET)
    await until(lambda: count(door, "refused") == 1)
    await until(lambda: not door._exchanges)
    writer.close()


async def test_who_leaves_in_the_middle_is_forgotten(door: HttpDoor) -> None:
    _, writer = await asyncio.open_connection("127.0.0.1", door.port)
    writer.write(GET[:10])
    writer.close()
    await until(lambda: count(door, "refused") == 1)
    await until(lambda: not door._exchanges)


async def test_the_stop_waits_for_nobody(door: HttpDoor) -> None:
    reader, writer = await asyncio.open_connection("127.0.0.1", door.port)
    await until(lambda: bool(door._exchanges))
    await door.close()
    with contextlib.suppress(ConnectionError):
        assert await reader.read() == b""
    writer.close()
    with pytest.raises(ConnectionError):
        await asyncio.open_connection("127.0.0.1", door.port)


async def test_an_address_that_cannot_be_had(door: HttpDoor) -> None:
    second = HttpDoor("127.0.0.1", door.port, {}, Counters())
    with pytest.raises(StartError, match=f"at 127.0.0.1:{door.port}: Address already in use"):
        await second.bind()


async def test_an_address_that_another_takes_first() -> None:
    first, second = (HttpDoor("127.0.0.1", 0, {}, Counters()) for _ in range(2))
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
    assert HttpDoor("::1", 1, {}, Counters()).address == "[::1]:1"
