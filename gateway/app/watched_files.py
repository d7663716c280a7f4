"""Files that listeners use are read again when they change."""

import asyncio
import logging
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from gateway.app.listeners import reload_listeners
from gateway.config.settings import Configuration

if TYPE_CHECKING:
    from gateway.app.gateway import Gateway

logger = logging.getLogger(__name__)

INTERVAL = 1.0
"""Seconds between two looks. A file that changed is read when it stayed the same for one of them:
an editor may still be writing it."""

KEYS = ("password_file", "acl_file", "tls_certificate", "tls_key", "client_ca")

Seen = list[tuple[int, int, int] | None]
"""Of each file time of change, size and inode; None for one that is not there."""


def watched(configuration: Configuration) -> list[Path]:
    """Return the files of all listeners, each once."""
    names = [getattr(each, key) for each in configuration.listeners for key in KEYS]
    return [Path(name) for name in dict.fromkeys(names) if name is not None]


async def watch(gateway: "Gateway", asked: asyncio.Event) -> None:
    """Read the listeners' files again whenever one of them has changed, or it is `asked` for."""
    paths = watched(gateway.configuration)
    used = seen = look(paths)
    while True:
        await _wait(asked, INTERVAL if paths else None)
        before, seen = seen, look(paths)
        if asked.is_set():
            asked.clear()
        elif seen == before and seen != used:
            logger.info("a file of a listener has changed")
        else:
            continue
        used = seen
        await reload_listeners(gateway)


async def _wait(asked: asyncio.Event, seconds: float | None) -> None:
    """Return when the event is set, after so many seconds at the latest."""
    with suppress(TimeoutError):
        async with asyncio.timeout(seconds):
            await asked.wait()


def look(paths: list[Path]) -> Seen:
    """Return what tells whether the files have changed."""
    seen: Seen = []
    for path in paths:
        try:
            status = path.stat()
        except OSError:
            seen.append(None)
        else:
            seen.append((status.st_mtime_ns, status.st_size, status.st_ino))
    return seen
