"""MQTT over WebSocket (MQTT 5, section 6; RFC 6455).

Frames are handled by the `websockets` package's core without I/O, which needs no other package and
unmasks in C.
"""

import asyncio
import logging
from http import HTTPStatus
from typing import cast

from websockets.frames import CloseCode, Frame, Opcode
from websockets.http11 import Request
from websockets.protocol import SEND_EOF, Event, State
from websockets.server import ServerProtocol
from websockets.typing import Subprotocol

from gateway.counters import Counters
from gateway.server.transport import ClientTransport, peer_name
from gateway.server.websocket.handshake import (
    MAXIMUM_REQUEST,
    Terms,
    answer,
    reason,
    refuse_garbage,
    refuse_size,
)
from gateway.server.wrapped_transport import WrappedTransport


class FrameTransport(WrappedTransport):
    """Writes and closes with frames; everything else is the socket's."""

    def __init__(self, frames: "WebSocketConnection", transport: asyncio.Transport) -> None:
        super().__init__()
        self._frames = frames
        self._transport = transport

    def write(self, data: bytes | bytearray | memoryview) -> None:
        """Send the bytes as one binary frame."""
        self._frames.write(data)

    def can_write_eof(self) -> bool:
        """Return False: a WebSocket has no half-close."""
        return False

    def close(self) -> None:
        """Begin the closing handshake; the socket is closed when the peer has answered."""
        self._frames.close()

    def abort(self) -> None:
        """Close the socket now."""
        self._transport.abort()

    def is_closing(self) -> bool:
        """Return whether nothing can be written any more."""
        return self._frames.closing or self._transport.is_closing()


logger = logging.getLogger(__name__)
_core_logger = logging.getLogger(f"{__name__}.core")
_core_logger.setLevel(logging.WARNING)  # its lower levels repeat what we log

SUBPROTOCOLS = (Subprotocol("mqtt"), Subprotocol("mqttv3.1"))
"""[MQTT-6.0.0-3]; the second was MQTT 3.1's."""

SMALLEST_FRAME_LIMIT = 64 * 1024
"""Bytes of a frame that are accepted even if packets must be smaller: it may hold several."""

READ_BYTES = 4 * 1024
"""Bytes of one read: 700 empty frames, each of which becomes a Python object."""

PONG = 0x8A


class WebSocketConnection(asyncio.Protocol):
    """Passes the data of binary frames to a protocol, and its output to frames.

    A packet may be spread over frames and a frame may hold several [MQTT-6.0.0-2]; each write
    becomes one frame.
    """

    def __init__(
        self,
        inner: ClientTransport,
        maximum_packet_size: int,
        terms: Terms,
        counters: Counters,
    ) -> None:
        self.inner = inner
        self._counters = counters
        self._terms = terms
        self._core = ServerProtocol(
            subprotocols=SUBPROTOCOLS,
            max_size=(None, max(maximum_packet_size, SMALLEST_FRAME_LIMIT)),
            logger=_core_logger,
        )
        self._transport: asyncio.Transport | None = None
        self._peer = "unknown"
        self._request_size = 0
        self._paused = False
        self._pong = b""  # the last one not written, which answers all before it

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Start the inner protocol as soon as the handshake is done."""
        self._transport = cast("asyncio.Transport", transport)
        if hasattr(transport, "max_size"):  # asyncio's name; TLS reads as little in any case
            transport.max_size = READ_BYTES
        self._peer = peer_name(transport)
        self.inner.connection_made(FrameTransport(self, self._transport))

    def data_received(self, data: bytes) -> None:
        """Pass the data of binary frames to the inner protocol."""
        core = self._core
        if core.eof_sent:
            return
        connecting = core.state is State.CONNECTING
        core.receive_data(data)
        events = core.events_received()
        if connecting:
            self._shake_hands(events, len(data))
        else:
            self._handle(cast("list[Frame]", events))
        self._send()
        self.inner.note_below(len(core.reader.buffer))

    def eof_received(self) -> bool | None:
        """Let the transport close itself."""
        return self.inner.eof_received()

    def connection_lost(self, error: Exception | None) -> None:
        """End the inner protocol."""
        self._transport = None
        self._core.parser.close()  # a generator of the core that refers to the core
        self.inner.connection_lost(error)

    def pause_writing(self) -> None:
        """Note that the peer reads too slowly."""
        self._paused = True
        self.inner.pause_writing()

    def resume_writing(self) -> None:
        """Note that more can be written."""
        self._paused = False
        if self._core.state is State.OPEN:
            self._write(self._pong)
        self._pong = b""
        self.inner.resume_writing()

    def write(self, data: bytes | bytearray | memoryview) -> None:
        """Send one binary frame [MQTT-6.0.0-1]; nothing before the handshake and after closing."""
        if self._core.state is State.OPEN:
            self._core.send_binary(data)
            self._send()

    def close(self) -> None:
        """Begin the closing handshake, if the opening one is done."""
        if self._core.state is State.OPEN:
            self._core.send_close(CloseCode.NORMAL_CLOSURE)
            self._send()
        elif self._core.state is State.CONNECTING and self._transport is not None:
            self._transport.close()

    @property
    def closing(self) -> bool:
        """True once either side has begun to close."""
        return self._core.eof_sent or self._core.state in (State.CLOSING, State.CLOSED)

    def _shake_hands(self, events: list[Event], size: int) -> None:
        """Answer the request once it is complete.

        A client waits for the answer before it sends a frame (RFC 6455, section 4.1).
        """
        core = self._core
        over = core.eof_sent  # not HTTP, or a frame that ends the connection
        core.data_to_send()  # only that end, or an answer to a premature frame
        self._request_size += size
        if self._request_size > MAXIMUM_REQUEST:
            response = refuse_size(core)
        elif over or len(events) > 1:
            response = refuse_garbage(core)
        elif events:
            response = answer(core, cast("Request", events[0]), self._terms)
        else:
            return
        if response.status_code != HTTPStatus.SWITCHING_PROTOCOLS:
            self._counters.add("tidegate/connections/websocket_refused")
            status = f"{response.status_code} {response.reason_phrase}"
            if response.status_code == HTTPStatus.FORBIDDEN:
                self._counters.add("tidegate/connections/origins_refused")
            if len(events) == 1 and not over:
                status += reason(response.status_code, cast("Request", events[0]))
            logger.info("no WebSocket with %s: %s", self._peer, status)
        if over:
            self._write(response.serialize())
            self._end()
        else:
            core.send_response(response)

    def _handle(self, frames: list[Frame]) -> None:
        payloads = []
        for frame in frames:
            if frame.opcode is Opcode.TEXT:  # [MQTT-6.0.0-1]
                self._core.fail(CloseCode.UNSUPPORTED_DATA, "MQTT is in binary frames")
                self._note("a text frame")
                break
            if frame.opcode in (Opcode.BINARY, Opcode.CONT) and frame.data:
                payloads.append(bytes(frame.data))
        if payloads:
            self.inner.data_received(payloads[0] if len(payloads) == 1 else b"".join(payloads))
        if self._core.parser_exc is not None:
            self._note(str(self._core.parser_exc))

    def _note(self, error: str) -> None:
        self._counters.add("tidegate/connections/websocket_errors")
        logger.info("closing the WebSocket of %s: %s", self._peer, error)

    def _send(self) -> None:
        """Write the core's output; only the last pong for a peer that reads none.

        That is enough (RFC 6455, section 5.5.3), and bounded.
        """
        for data in self._core.data_to_send():
            if data == SEND_EOF:
                self._end()
            elif self._paused and data[0] == PONG:
                self._pong = data
            else:
                self._write(data)

    def _write(self, data: bytes) -> None:
        if self._transport is not None and data:
            self._transport.write(data)

    def _end(self) -> None:
        """Close the socket; the inner protocol has a timeout for that."""
        self.inner.eof_received()
        if self._transport is not None:
            self._transport.close()
