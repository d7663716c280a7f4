"""Hosts and origins as HTTP clients write them (RFC 9110, RFC 6454), and which are loopback."""

import ipaddress
import re
from typing import NamedTuple

AUTHORITY = re.compile(r"(\[[0-9A-Fa-f:.]{2,64}\]|[A-Za-z0-9._-]{1,255})(?::([0-9]{1,5})?)?")
SCHEME = re.compile(r"([A-Za-z][A-Za-z0-9+.-]{0,30})://(.+)", re.DOTALL)

DEFAULT_PORTS = {"http": 80, "https": 443}

OPAQUE = "null"
"""The origin of a page without one: a file, a sandboxed frame, a redirected request."""

ANY = "*"
"""A configuration's word for every origin."""


class Authority(NamedTuple):
    """A host and its port, 0 without one; IPv6 addresses without brackets."""

    host: str
    port: int


def authority(text: str) -> Authority | None:
    """Return the host and port of a Host field, in lower case; None if it is invalid."""
    match = AUTHORITY.fullmatch(text.strip(" \t"))
    if match is None or int(match[2] or 0) > 65_535:
        return None
    host = match[1].lower()
    host = host[1:-1] if host.startswith("[") else host.removesuffix(".")
    return Authority(host, int(match[2] or 0)) if host else None


def origin(text: str) -> tuple[str, Authority] | None:
    """Return the scheme and the authority of an origin, with its port; None if it is invalid."""
    match = SCHEME.fullmatch(text)
    found = None if match is None else authority(match[2])
    if match is None or found is None:
        return None
    scheme = match[1].lower()
    return scheme, Authority(found.host, found.port or DEFAULT_PORTS.get(scheme, 0))


def is_loopback(host: str) -> bool:
    """Return whether a listener at this address is reachable only from this machine."""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"
