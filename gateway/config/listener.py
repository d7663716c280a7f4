"""Which settings of a listener go together."""

import ipaddress
from typing import Any

NEEDS = (
    ("mode", "path"),
    ("tls_key", "tls_certificate"),
    ("client_ca", "tls_certificate"),
    ("tls_identity", "client_ca"),
    ("websocket_origins", "websocket"),
    ("connection_burst", "connection_rate"),
)
"""The first key means nothing without the second."""

EXCLUDES = (
    ("host", "path"),
    ("port", "path"),
    ("password_file", "tls_identity"),
    ("allow_anonymous", "tls_identity"),
)
"""Of these two keys one can be given: a socket has one address, a client one identity."""

PROOFS = ("password_file", "client_ca", "allow_anonymous")
"""Beyond loopback one of them says who may connect."""

Mistake = tuple[str, object, str]


def find_mistake(settings: dict[str, Any]) -> Mistake | None:
    """Return (key, value, what is allowed) of the first mistake; None if there is none.

    `settings` are the keys as the file gives them, each checked for itself.
    """
    for key, needed in NEEDS:
        if key in settings and not settings.get(needed):
            return key, settings[key], f"only together with {needed}"
    for key, other in EXCLUDES:
        if key in settings and other in settings:
            return key, settings[key], f"either {key} or {other}, not both"
    return _find_open_door(settings)


def _find_open_door(settings: dict[str, Any]) -> Mistake | None:
    """Anonymous access beyond loopback is never an accident."""
    host = settings.get("host")
    if host is None or is_loopback(host) or any(key in settings for key in PROOFS):
        return None
    allowed = (
        "beyond loopback a listener names a password_file or a client_ca,"
        " or says allow_anonymous = true"
    )
    return "host", host, allowed


def is_loopback(host: str) -> bool:
    """Return whether only this machine reaches what listens there."""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"
