"""Chooses how packets travel on a socket: as they are, or over WebSocket."""

import socket
from collections.abc import Callable

from gateway.uplink.fleet.stream import FleetStream

WEBSOCKET = ("ws:", "wss:")


def make_stream(
    sock: socket.socket,
    wake: Callable[[], None],
    on_data: Callable[[bytes], None],
    url: str,
    maximum_packet_size: int,
) -> FleetStream:
    """Return the stream that `url` asks for."""
    if not url.startswith(WEBSOCKET):
        return FleetStream(sock, wake, on_data)
    from gateway.uplink.fleet.websocket_stream import WebSocketStream  # an extra

    return WebSocketStream(sock, wake, on_data, url, maximum_packet_size)
