"""MQTT over WebSocket to the fleet's broker (MQTT 5, section 6; RFC 6455)."""

import logging
import socket
from collections.abc import Callable
from urllib.parse import urlsplit, urlunsplit

from websockets.client import ClientProtocol
from websockets.exceptions import PayloadTooBig
from websockets.frames import Frame, Opcode
from websockets.protocol import State
from websockets.typing import Subprotocol
from websockets.uri import parse_uri

from gateway.uplink.fleet.stream import FleetStream

PATH = "/mqtt"
"""The path if a URL has none, as with most brokers."""

LEAST_FRAME = 16 * 1024 * 1024
"""Bytes of a frame that are accepted at least: an oversized packet that is skipped is in one
frame."""

_core_logger = logging.getLogger(f"{__name__}.core")
_core_logger.setLevel(logging.WARNING)  # its lower levels repeat what we log


class WebSocketStream(FleetStream):
    """A stream of binary frames; packets wait for the end of the handshake.

    A frame is in memory as a whole: one of more than LEAST_FRAME bytes, and more than twice
    `maximum_packet_size`, ends the connection.
    """

    def __init__(
        self,
        sock: socket.socket,
        wake: Callable[[], None],
        on_data: Callable[[bytes], None],
        url: str,
        maximum_packet_size: int,
    ) -> None:
        super().__init__(sock, wake, on_data)
        parts = urlsplit(url)
        path = PATH if parts.path in ("", "/") else parts.path
        self._maximum_frame = max(LEAST_FRAME, 2 * maximum_packet_size)
        self._core = ClientProtocol(
            parse_uri(urlunsplit((parts.scheme, parts.netloc, path, parts.query, ""))),
            subprotocols=[Subprotocol("mqtt")],  # [MQTT-6.0.0-3]
            max_size=self._maximum_frame,
            logger=_core_logger,
        )
        self._upgrade_sent = False
        self._waiting: list[bytes] = []  # until the end of the handshake

    def data_received(self, data: bytes) -> None:
        """Pass on the data of the frames, and answer the WebSocket's own."""
        self._core.receive_data(data)
        for event in self._core.events_received():
            if isinstance(event, Frame) and event.opcode in (Opcode.BINARY, Opcode.CONT):
                self._on_data(bytes(event.data))
        if self._core.handshake_exc is not None:
            self._lose(f"no WebSocket: {self._core.handshake_exc}")
        elif isinstance(self._core.parser_exc, PayloadTooBig):
            self._lose(f"a WebSocket frame of more than {self._maximum_frame} bytes")
        elif self._core.state in (State.CLOSING, State.CLOSED) and self._core.close_rcvd:
            self._lose(f"the server closed the WebSocket: {self._core.close_rcvd}")
        self._flush()

    def write(self, data: bytes) -> None:
        """Send packets as one frame, once the handshake has ended."""
        self._waiting.append(data)
        self._flush()

    def _flush(self) -> None:
        """Send what waits, and the WebSocket's own output."""
        if self._transport is None or self.lost is not None:
            return
        if not self._upgrade_sent:
            self._upgrade_sent = True
            self._core.send_request(self._core.connect())
        if self._core.state is State.OPEN and self._waiting:
            self._core.send_binary(b"".join(self._waiting))
            self._waiting.clear()
        data = b"".join(self._core.data_to_send())
        if data:
            self._transport.write(data)
