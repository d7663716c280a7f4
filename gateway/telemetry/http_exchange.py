"""One request over HTTP and its answer, from the connection's beginning to its end."""

import asyncio
import re
from collections.abc import Callable
from dataclasses import dataclass
from enum import IntEnum
from http import HTTPStatus
from typing import cast

from gateway.config.address_block import address_block

REQUEST_LINE = re.compile(r"([!#$%&'*+.^_`|~0-9A-Za-z-]+) ([!-~]+) HTTP/([0-9])\.[0-9]")
FIELD = re.compile(r"([!#$%&'*+.^_`|~0-9A-Za-z-]+):([\t -~\x80-\xff]*)")
TARGET = re.compile(r"(?:https?://([^/?#]+))?(/[^?#]*)?(?:\?[^#]*)?", re.IGNORECASE)


MAXIMUM_REQUEST = 8 * 1024
"""Maximum bytes of a request's line and fields; a longer one gets 431."""

EXCHANGE_TIMEOUT = 10.0
"""Maximum seconds from the connection to the last byte of the response, whatever trickles in."""

CLOSE_TIMEOUT = 1.0
"""Seconds that the peer has to close after the response. Closing a socket while more comes would
reset it, and the peer might not see the response."""
END = b"\r\n\r\n"


class RequestError(Exception):
    """A request that is answered with `status`."""

    def __init__(self, status: HTTPStatus) -> None:
        super().__init__(status.phrase)
        self.status = status


@dataclass(frozen=True, slots=True)
class Request:
    """A request; `path` excludes the query, which is ignored.

    `host` is whom it is for, with a port if it says one; None only before HTTP/1.1.
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
    if target is None:  # `*` and whatever else is no path of ours is what no page is called
        return Request(line[1], line[2], host)
    return Request(line[1], target[2] or "/", target[1] or host)  # RFC 9112 section 3.2.2


def _host(fields: list[str], hosts_needed: int) -> str | None:
    """Return what the Host field says; raise RequestError if a field is none."""
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
    """How far an exchange is; where there are too many, the lowest goes first."""

    ANSWERED = 0
    WAITING = 1
    ANSWERING = 2


class Exchange(asyncio.Protocol):
    """Reads a request, writes what `answer` returns for it (None: it is too long), and closes.

    `admit` is told of the beginning, and `end` of the end with whether there was an answer.
    """

    def __init__(
        self,
        answer: Callable[[bytes | None], bytes],
        admit: Callable[["Exchange"], None],
        end: Callable[["Exchange", bool], None],
    ) -> None:
        self.stage = Stage.WAITING
        self.block = ""
        """Whose share of the connections it counts in."""
        self._answer = answer
        self._admit = admit
        self._end = end
        self._request = bytearray()
        self._transport: asyncio.Transport
        self._timer: asyncio.TimerHandle

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Wait for the request."""
        self._transport = cast("asyncio.Transport", transport)
        self._transport.set_write_buffer_limits(0)  # told as soon as all is written
        self.block = address_block(str(transport.get_extra_info("peername")[0]))
        loop = asyncio.get_running_loop()
        self._timer = loop.call_later(EXCHANGE_TIMEOUT, self._transport.abort)
        self._admit(self)

    def data_received(self, data: bytes) -> None:
        """Answer once the request is whole, and drop what comes behind it."""
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
        """End our half: the whole response is the kernel's."""
        self.stage = Stage.ANSWERED
        try:
            self._transport.write_eof()
        except OSError:  # the peer was faster
            self._transport.abort()
        self._timer.cancel()
        loop = asyncio.get_running_loop()
        self._timer = loop.call_later(CLOSE_TIMEOUT, self._transport.abort)

    def connection_lost(self, error: Exception | None) -> None:  # noqa: ARG002 - asyncio's
        """Tell that it is over."""
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
