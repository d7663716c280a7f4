"""asyncio without OpenSSL, for a gateway that speaks no TLS."""

import importlib
import sys

from gateway.config.configuration import Configuration


def needs_tls(configuration: Configuration) -> bool:
    """Return whether a listener has a certificate, or an uplink a broker that may have one."""
    return any(uplink.url is not None for uplink in configuration.uplinks) or any(
        listener.tls_certificate is not None for listener in configuration.listeners
    )


def import_asyncio(*, tls: bool) -> None:
    """Bring asyncio into memory, without its TLS unless that is wanted: it takes 4 MiB.

    asyncio does without the ssl module as on a Python that was built without it: its own
    connections can then use no TLS. Whoever imports ssl later gets it.
    """
    if tls or "ssl" in sys.modules:
        return
    sys.modules["ssl"] = None  # type: ignore[assignment]  # how Python is told that there is none
    try:
        importlib.import_module("asyncio")
    finally:
        del sys.modules["ssl"]
