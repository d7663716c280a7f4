"""One request over HTTP and its answer, from the connection's beginning to its end."""

import asyncio
from collections.abc import Callable
from enum import IntEnum
from typing import cast

from gateway.config.address_block import address_block

MAXIMUM_REQUEST = 8 * 1024
"""Maximum bytes of a request's line and fields; a longer one gets 431."""

EXCHANGE_TIMEOUT = 10.0
"""Maximum seconds from the connection to the last byte of the response, whatever trickles in."""

CLOSE_TIMEOUT = 1.0
"""Seconds that the peer has to close after the response. Closing a socket while more comes would
reset it, and the peer might not see the response."""

END = b"\r\n\r\n"


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
