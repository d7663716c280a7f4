"""The head of an HTTP/1.1 request, as far as a page without a body needs it (RFC 9112)."""

import re
from dataclasses import dataclass
from http import HTTPStatus

REQUEST_LINE = re.compile(r"([!#$%&'*+.^_`|~0-9A-Za-z-]+) ([!-~]+) HTTP/([0-9])\.[0-9]")
FIELD = re.compile(r"([!#$%&'*+.^_`|~0-9A-Za-z-]+):([\t -~\x80-\xff]*)")
TARGET = re.compile(r"(?:https?://([^/?#]+))?(/[^?#]*)?(?:\?[^#]*)?", re.IGNORECASE)


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
