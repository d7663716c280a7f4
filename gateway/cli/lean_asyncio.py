"""asyncio without OpenSSL, for a gateway whose listeners speak no TLS."""

import importlib
import sys


def import_asyncio(*, tls: bool) -> None:
    """Bring asyncio into memory, without its TLS unless that is wanted: it takes 4 MiB.

    asyncio does without the ssl module as on a Python that was built without it: its own
    connections can then use no TLS. Whoever imports ssl later gets it, as the uplink's client.
    """
    if tls or "ssl" in sys.modules:
        return
    sys.modules["ssl"] = None  # type: ignore[assignment]  # how Python is told that there is none
    try:
        importlib.import_module("asyncio")
    finally:
        del sys.modules["ssl"]
