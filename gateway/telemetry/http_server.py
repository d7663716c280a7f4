"""A small HTTP/1.1 server for a few pages that are read and never written."""

import asyncio
import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from http import HTTPStatus

from gateway.counters import Counters
from gateway.errors import StartError
from gateway.telemetry.http_request import Request, RequestError, parse

MAXIMUM_REQUEST = 8 * 1024
"""Maximum bytes of a request's line and fields; a longer one gets 431."""

MAXIMUM_CONNECTIONS = 8
"""Maximum connections at one time; a further one is closed at once."""

EXCHANGE_TIMEOUT = 10.0
"""Maximum seconds from the connection to the last byte of the response."""

BACKLOG = 16
"""Backlog of the listening socket."""

TEXT = "text/plain; charset=utf-8"

METHODS = ("GET", "HEAD")


@dataclass(frozen=True, slots=True)
class Page:
    """A response."""

    body: str
    status: HTTPStatus = HTTPStatus.OK
    content_type: str = TEXT


Pages = Mapping[str, Callable[[], Page]]
"""A function for each path that returns the page; called on the loop for each request."""


class HttpServer:
    """Answers GET and HEAD, one request a connection: no body is read, nothing is kept alive."""

    def __init__(self, host: str, port: int, pages: Pages, counters: Counters) -> None:
        self.port = port
        self._host = host
        self._pages = pages
        self._counters = counters
        self._server: asyncio.Server | None = None
        self._exchanges: set[asyncio.Task[None]] = set()

    @property
    def address(self) -> str:
        """Host and port, as in a URL."""
        return f"[{self._host}]:{self.port}" if ":" in self._host else f"{self._host}:{self.port}"

    async def bind(self) -> None:
        """Bind the address without listening; raise StartError if that fails."""
        try:
            self._server = await asyncio.start_server(
                self._accept,
                self._host,
                self.port,
                limit=MAXIMUM_REQUEST,
                backlog=BACKLOG,
                start_serving=False,
            )
        except OSError as error:
            raise self._cannot_listen(error) from error
        self.port = self._server.sockets[0].getsockname()[1]

    async def serve(self) -> None:
        """Start listening; raise StartError if another process has the address."""
        if self._server is None:
            return
        try:
            await self._server.start_serving()
        except OSError as error:
            raise self._cannot_listen(error) from error

    async def close(self) -> None:
        """Stop listening and close all connections."""
        if self._server is not None:
            self._server.close()
        for exchange in self._exchanges:
            exchange.cancel()
        await asyncio.gather(*self._exchanges, return_exceptions=True)

    def _cannot_listen(self, error: OSError) -> StartError:
        # asyncio repeats the address in its own text; a resolver's errors have negative numbers
        number = error.errno or 0
        reason = os.strerror(number) if number > 0 else error.strerror
        return StartError(f"cannot give metrics at {self.address}: {reason or error}")

    def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if len(self._exchanges) >= MAXIMUM_CONNECTIONS:
            self._counters.add("tidegate/metrics/refused")
            writer.transport.abort()
            return
        exchange = asyncio.get_running_loop().create_task(self._exchange(reader, writer))
        self._exchanges.add(exchange)
        exchange.add_done_callback(self._exchanges.discard)

    async def _exchange(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            async with asyncio.timeout(EXCHANGE_TIMEOUT):
                writer.write(await self._answer(reader))
                writer.close()
                await writer.wait_closed()
            self._counters.add("tidegate/metrics/requests")
        except (OSError, EOFError):  # too slow, reset by the peer, or no whole request
            self._counters.add("tidegate/metrics/refused")
        finally:
            writer.transport.abort()

    async def _answer(self, reader: asyncio.StreamReader) -> bytes:
        """Read a request and return the response; raise EOFError if there is none."""
        try:
            request = parse(await reader.readuntil(b"\r\n\r\n"))
        except asyncio.LimitOverrunError:
            return _encoded(_refusal(HTTPStatus.REQUEST_HEADER_FIELDS_TOO_LARGE))
        except RequestError as error:
            return _encoded(_refusal(error.status))
        return _encoded(self._page(request), with_body=request.method != "HEAD")

    def _page(self, request: Request) -> Page:
        if request.method not in METHODS:
            return _refusal(HTTPStatus.METHOD_NOT_ALLOWED)
        make = self._pages.get(request.path)
        return _refusal(HTTPStatus.NOT_FOUND) if make is None else make()


def _refusal(status: HTTPStatus) -> Page:
    return Page(f"{status.phrase}\n", status)


def _encoded(page: Page, *, with_body: bool = True) -> bytes:
    # no Date: a board's clock may be wrong, and then RFC 9110 section 6.6.1 wants none
    body = page.body.encode()
    lines = [
        f"HTTP/1.1 {page.status.value} {page.status.phrase}",
        f"Content-Type: {page.content_type}",
        f"Content-Length: {len(body)}",
        "Cache-Control: no-store",
        "Connection: close",
    ]
    if page.status is HTTPStatus.METHOD_NOT_ALLOWED:
        lines.append(f"Allow: {', '.join(METHODS)}")
    head = "\r\n".join(lines).encode() + b"\r\n\r\n"
    return head + body if with_body else head
