"""The answer to a WebSocket handshake: who may speak MQTT over HTTP (RFC 6455, section 4.2)."""

from http import HTTPStatus

from websockets.http11 import Request, Response
from websockets.server import ServerProtocol

from gateway.server.websocket.origins import Origins

PATHS = ("/mqtt", "/")

FIELDS = (
    "Connection",
    "Origin",
    "Sec-WebSocket-Extensions",
    "Sec-WebSocket-Key",
    "Sec-WebSocket-Protocol",
    "Sec-WebSocket-Version",
    "Upgrade",
)
"""Header fields that say something about the WebSocket; others may hold what they like."""

SHOWN_ORIGIN = 100
"""Characters of an origin that a log line repeats."""

MAXIMUM_REQUEST = 16 * 1024
"""Bytes of a request with its header fields: a browser's cookies fit."""


def answer(protocol: ServerProtocol, request: Request, origins: Origins) -> Response:
    """Return the response: 101 or a refusal."""
    path = request.path.partition("?")[0]
    if path not in PATHS:
        return protocol.reject(HTTPStatus.NOT_FOUND, f"MQTT is at {PATHS[0]}.\n")
    values = [value for name in FIELDS for value in request.headers.get_all(name)]
    if not all(value.isascii() for value in values):  # the core relies on it
        return refuse_garbage(protocol)
    if not origins.admits(request.headers.get_all("Origin"), request.headers.get_all("Host")):
        return protocol.reject(
            HTTPStatus.FORBIDDEN, "Pages of this origin may not connect: see websocket_origins.\n"
        )
    return protocol.accept(request)


def shown_origin(request: Request) -> str:
    """Return where the page came from, as it says, for a log line."""
    shown = ", ".join(request.headers.get_all("Origin"))
    return f"{shown[:SHOWN_ORIGIN]!r}"


def refuse_garbage(protocol: ServerProtocol) -> Response:
    """Return the response to what is no request for a WebSocket."""
    return protocol.reject(HTTPStatus.BAD_REQUEST, "This is not a WebSocket handshake.\n")


def refuse_size(protocol: ServerProtocol) -> Response:
    """Return the response to a request without end."""
    status = HTTPStatus.REQUEST_HEADER_FIELDS_TOO_LARGE
    return protocol.reject(status, f"At most {MAXIMUM_REQUEST} bytes.\n")
