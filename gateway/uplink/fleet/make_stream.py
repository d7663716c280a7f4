"""Chooses how packets travel on a socket: as they are, or over WebSocket."""

import socket
from collections.abc import Callable

from gateway.uplink.fleet.stream import FleetStream

WEBSOCKET = ("ws:", "wss:")


def make_stream(sock: socket.socket, wake: Callable[[], None], url: str) -> FleetStream:
    """Return the stream that `url` asks for."""
    if not url.startswith(WEBSOCKET):
        return FleetStream(sock, wake)
    from gateway.uplink.fleet.websocket_stream import WebSocketStream  # an extra

    return WebSocketStream(sock, wake, url)
