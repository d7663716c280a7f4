"""Answers a WebSocket handshake: which requests may use MQTT over HTTP (RFC 6455, section 4.2)."""

from http import HTTPStatus
from typing import NamedTuple

from websockets.http11 import Request, Response
from websockets.server import ServerProtocol

from gateway.server.websocket.origins import Origins

SUBPROTOCOL = "Sec-WebSocket-Protocol"

FIELDS = (
    "Connection",
    "Origin",
    "Sec-WebSocket-Extensions",
    "Sec-WebSocket-Key",
    SUBPROTOCOL,
    "Sec-WebSocket-Version",
    "Upgrade",
)
"""Header fields that matter for the WebSocket; others may have any content."""

SHOWN_ORIGIN = 100
"""Characters of an origin, or of a path, that a log line repeats."""

MAXIMUM_REQUEST = 16 * 1024
"""Bytes of a request with its header fields: a browser's cookies fit."""


class Terms(NamedTuple):
    """Paths of the WebSocket, allowed origins of pages, and whether `mqtt` must be offered."""

    origins: Origins
    paths: tuple[str, ...]
    without_subprotocol: bool


def answer(protocol: ServerProtocol, request: Request, terms: Terms) -> Response:
    """Return the response: 101 or a refusal."""
    if path_of(request) not in terms.paths:
        return protocol.reject(HTTPStatus.NOT_FOUND, f"MQTT is at {terms.paths[0]}.\n")
    values = [value for name in FIELDS for value in request.headers.get_all(name)]
    if not all(value.isascii() for value in values):  # the core relies on it
        return refuse_garbage(protocol)
    if not terms.origins.admits(request.headers.get_all("Origin"), request.headers.get_all("Host")):
        return protocol.reject(
            HTTPStatus.FORBIDDEN, "Pages of this origin may not connect: see websocket_origins.\n"
        )
    if terms.without_subprotocol and not request.headers.get_all(SUBPROTOCOL):
        protocol.available_subprotocols = None
    return protocol.accept(request)


def path_of(request: Request) -> str:
    """Return the requested path without its query."""
    return request.path.partition("?")[0]


def reason(status: int, request: Request) -> str:
    """Return the log text for a refusal: which key would allow the request."""
    if status == HTTPStatus.NOT_FOUND:
        return f" for {path_of(request)[:SHOWN_ORIGIN]!r}, which websocket_paths does not name"
    if status == HTTPStatus.FORBIDDEN:
        page = shown_origin(request)
        return f" for a page of {page}, which websocket_origins does not name"
    if status == HTTPStatus.BAD_REQUEST and not request.headers.get_all(SUBPROTOCOL):
        return ", without a subprotocol, which websocket_without_subprotocol would allow"
    return ""


def shown_origin(request: Request) -> str:
    """Return the page's origin, as claimed, for a log line."""
    shown = ", ".join(request.headers.get_all("Origin"))
    return f"{shown[:SHOWN_ORIGIN]!r}"


def refuse_garbage(protocol: ServerProtocol) -> Response:
    """Return the response to something that is no WebSocket request."""
    return protocol.reject(HTTPStatus.BAD_REQUEST, "This is not a WebSocket handshake.\n")


def refuse_size(protocol: ServerProtocol) -> Response:
    """Return the response to an endless request."""
    status = HTTPStatus.REQUEST_HEADER_FIELDS_TOO_LARGE
    return protocol.reject(status, f"At most {MAXIMUM_REQUEST} bytes.\n")
