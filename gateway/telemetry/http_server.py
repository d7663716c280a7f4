"""A small HTTP/1.1 server for a few read-only pages."""

import asyncio
import logging
import os
import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from enum import IntEnum
from http import HTTPStatus
from typing import cast

from gateway.config.addresses import OwnHosts, address_block
from gateway.counters import Counters
from gateway.errors import StartError
from gateway.settings.web_address import authority

REQUEST_LINE = re.compile(r"([!#$%&'*+.^_`|~0-9A-Za-z-]+) ([!-~]+) HTTP/([0-9])\.[0-9]")
FIELD = re.compile(r"([!#$%&'*+.^_`|~0-9A-Za-z-]+):([\t -~\x80-\xff]*)")
TARGET = re.compile(r"(?:https?://([^/?#]+))?(/[^?#]*)?(?:\?[^#]*)?", re.IGNORECASE)


MAXIMUM_REQUEST = 8 * 1024
"""Maximum bytes of a request's line and fields; a longer one gets 431."""

EXCHANGE_TIMEOUT = 10.0
"""Maximum seconds from the connection to the last byte of the response, however slow the peer."""

CLOSE_TIMEOUT = 1.0
"""Seconds that the peer has to close after the response. Closing a socket while more is received
would reset it, and the peer might lose the response."""
END = b"\r\n\r\n"


class RequestError(Exception):
    """A request that is answered with `status`."""

    def __init__(self, status: HTTPStatus) -> None:
        super().__init__(status.phrase)
        self.status = status


@dataclass(frozen=True, slots=True)
class Request:
    """A request; `path` excludes the query, which is ignored.

    `host` is its target, with a port if given; None only before HTTP/1.1.
    """

    method: str
    path: str
    host: str | None


def parse(head: bytes) -> Request:
    """Parse the head of a request, up to its empty line; raise RequestError."""
    first, *fields = head.decode("latin-1").removesuffix("\r\n\r\n").split("\r\n")
    line = REQUEST_LINE.fullmatch(first)
    if line is None:
        raise RequestError(HTTPStatus.BAD_REQUEST)
    if line[3] != "1":
        raise RequestError(HTTPStatus.HTTP_VERSION_NOT_SUPPORTED)
    host = _host(fields, hosts_needed=0 if first.endswith("HTTP/1.0") else 1)
    target = TARGET.fullmatch(line[2])
    if target is None:  # `*` and other targets without a path match no page
        return Request(line[1], line[2], host)
    return Request(line[1], target[2] or "/", target[1] or host)  # RFC 9112 section 3.2.2


def _host(fields: list[str], hosts_needed: int) -> str | None:
    """Return the Host field; raise RequestError for an invalid field."""
    hosts = []
    for field in fields:
        match = FIELD.fullmatch(field)
        if match is None:
            raise RequestError(HTTPStatus.BAD_REQUEST)
        if match[1].lower() == "host":
            hosts.append(match[2].strip(" \t"))
    if not hosts_needed <= len(hosts) <= 1:
        raise RequestError(HTTPStatus.BAD_REQUEST)  # RFC 9112 section 3.2
    return hosts[0] if hosts else None


class Stage(IntEnum):
    """The progress of an exchange; above the limit, the lowest is closed first."""

    ANSWERED = 0
    WAITING = 1
    ANSWERING = 2


class Exchange(asyncio.Protocol):
    """Reads a request, writes the result of `answer` (None: it is too long), and closes.

    `admit` is called at the beginning, and `end` at the end with whether there was an answer.
    """

    def __init__(
        self,
        answer: Callable[[bytes | None], bytes],
        admit: Callable[["Exchange"], None],
        end: Callable[["Exchange", bool], None],
    ) -> None:
        self.stage = Stage.WAITING
        self.block = ""
        """The address or network whose connections it counts with."""
        self._answer = answer
        self._admit = admit
        self._end = end
        self._request = bytearray()
        self._transport: asyncio.Transport
        self._timer: asyncio.TimerHandle

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Wait for the request."""
        self._transport = cast("asyncio.Transport", transport)
        self._transport.set_write_buffer_limits(0)  # notify as soon as all is written
        self.block = address_block(str(transport.get_extra_info("peername")[0]))
        loop = asyncio.get_running_loop()
        self._timer = loop.call_later(EXCHANGE_TIMEOUT, self._transport.abort)
        self._admit(self)

    def data_received(self, data: bytes) -> None:
        """Answer once the request is complete, and drop what follows it."""
        if self.stage is not Stage.WAITING:
            return
        searched = max(0, len(self._request) - len(END))
        self._request += data
        end = self._request.find(END, searched)
        if max(end, len(self._request) if end < 0 else 0) > MAXIMUM_REQUEST:
            self._write(self._answer(None))
        elif end >= 0:
            self._write(self._answer(bytes(self._request[: end + len(END)])))

    def resume_writing(self) -> None:
        """Close our half: the kernel has the whole response."""
        self.stage = Stage.ANSWERED
        try:
            self._transport.write_eof()
        except OSError:  # the peer closed first
            self._transport.abort()
        self._timer.cancel()
        loop = asyncio.get_running_loop()
        self._timer = loop.call_later(CLOSE_TIMEOUT, self._transport.abort)

    def connection_lost(self, error: Exception | None) -> None:  # noqa: ARG002 - asyncio's
        """Report the end."""
        self._timer.cancel()
        self._end(self, self.stage is Stage.ANSWERED)

    def abort(self) -> None:
        """Close the connection now."""
        self._transport.abort()

    def _write(self, response: bytes) -> None:
        self._request.clear()
        self.stage = Stage.ANSWERING
        self._transport.write(response)
        if not self._transport.get_write_buffer_size():
            self.resume_writing()


logger = logging.getLogger(__name__)

MAXIMUM_CONNECTIONS = 64
"""Maximum concurrent connections; for a further one another is closed."""

MAXIMUM_OF_ADDRESS = 32
"""Maximum connections of one address, or network of IPv6."""

ACCEPTED_AT_ONCE = 4
"""Connections that are accepted before requests are read, so that new ones are not closed
unread."""

BACKLOG = 1024
"""Connections that the kernel queues until they are accepted."""

LOG_INTERVAL = 60.0
"""Seconds between two log lines about a foreign Host."""

SHOWN = 80
"""Characters of a Host field that a log line repeats."""

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
    """Answers GET and HEAD, one request a connection: no body is read, nothing is kept alive.

    Host must be this machine or one of `named`. Above the limit, the oldest connection of the
    address with most is closed, first one that was answered, then one without a whole request.
    """

    def __init__(
        self, host: str, port: int, pages: Pages, counters: Counters, named: Iterable[str] = ()
    ) -> None:
        self.port = port
        self._host = host
        self._hosts = OwnHosts(host, named)
        self.pages = pages
        self._counters = counters
        self._server: asyncio.Server | None = None
        self._exchanges: dict[Exchange, None] = {}  # the oldest first
        self._silent_until = 0.0

    @property
    def address(self) -> str:
        """Host and port, as in a URL."""
        return f"[{self._host}]:{self.port}" if ":" in self._host else f"{self._host}:{self.port}"

    async def bind(self) -> None:
        """Bind the address without listening; raise StartError if that fails."""
        try:
            self._server = await asyncio.get_running_loop().create_server(
                lambda: Exchange(self._answer, self._admit, self._end),
                self._host,
                self.port,
                backlog=ACCEPTED_AT_ONCE,
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
        for each in self._server.sockets:
            with each.dup() as same:
                same.listen(BACKLOG)

    async def close(self) -> None:
        """Stop listening and close all connections."""
        if self._server is not None:
            self._server.close()
        for exchange in list(self._exchanges):
            exchange.abort()
        await asyncio.sleep(0)  # in which they end

    def _cannot_listen(self, error: OSError) -> StartError:
        # asyncio repeats the address in its own text; a resolver's errors have negative numbers
        number = error.errno or 0
        reason = os.strerror(number) if number > 0 else error.strerror
        return StartError(f"cannot serve metrics at {self.address}: {reason or error}")

    def _admit(self, exchange: Exchange) -> None:
        """Admit it, and close another connection above the limit."""
        # accepted while the server closed
        if self._server is None or not self._server.is_serving():
            exchange.abort()
            return
        self._exchanges[exchange] = None
        by_block = Counter(each.block for each in self._exchanges)
        block = exchange.block
        if len(self._exchanges) > MAXIMUM_CONNECTIONS:
            block = by_block.most_common(1)[0][0]
        elif by_block[block] <= MAXIMUM_OF_ADDRESS:
            return
        others = (each for each in self._exchanges if each.block == block and each is not exchange)
        oldest = min(others, key=lambda each: each.stage, default=exchange)
        self._forget(oldest)
        oldest.abort()

    def _end(self, exchange: Exchange, answered: bool) -> None:
        self._forget(exchange)
        self._counters.add(f"tidegate/metrics/{'requests' if answered else 'refused'}")

    def _forget(self, exchange: Exchange) -> None:
        self._exchanges.pop(exchange, None)

    def _answer(self, head: bytes | None) -> bytes:
        """Return the response to a request, or to one that is too long."""
        if head is None:
            return _encoded(_refusal(HTTPStatus.REQUEST_HEADER_FIELDS_TOO_LARGE))
        try:
            request = parse(head)
        except RequestError as error:
            return _encoded(_refusal(error.status))
        return _encoded(self._page(request), with_body=request.method != "HEAD")

    def _page(self, request: Request) -> Page:
        if not self._is_for_us(request):
            return _refusal(HTTPStatus.MISDIRECTED_REQUEST)
        if request.method not in METHODS:
            return _refusal(HTTPStatus.METHOD_NOT_ALLOWED)
        make = self.pages.get(request.path)
        return _refusal(HTTPStatus.NOT_FOUND) if make is None else make()

    def _is_for_us(self, request: Request) -> bool:
        """Return whether Host, which only old programs omit, means this machine.

        A browser's page whose name resolves to this machine (DNS rebinding) has its own name there.
        """
        if request.host is None:
            return True
        requested_host = authority(request.host)
        if requested_host is not None and requested_host.host in self._hosts:
            return True
        self._counters.add("tidegate/metrics/foreign_hosts")
        now = asyncio.get_running_loop().time()
        if now >= self._silent_until:
            self._silent_until = now + LOG_INTERVAL
            shown = f"{request.host[:SHOWN]!r}"
            logger.warning(
                "metrics are requested from %s, which [metrics] hosts does not name", shown
            )
        return False


def _refusal(status: HTTPStatus) -> Page:
    return Page(f"{status.phrase}\n", status)


def _encoded(page: Page, *, with_body: bool = True) -> bytes:
    # no Date: a board's clock may be wrong, and then RFC 9110 section 6.6.1 forbids it
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
