"""Reads files of listeners again when they have changed and are complete."""

import asyncio
import logging
from collections.abc import Iterator, Sequence
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import NamedTuple

from gateway.app.listeners import reload_listeners
from gateway.app.parts import Core, Run
from gateway.config.configuration import Configuration
from gateway.config.named_file import open_named
from gateway.server.listening.listener import Listener

logger = logging.getLogger(__name__)

INTERVAL = 1.0
"""Seconds between two checks."""

STILL = 5.0
"""Seconds for which a file that was written in place must be unchanged: the writer may not be
done."""

UNFINISHED = 15.0
"""The same for a file that seems incomplete: it is empty, or ends within a line."""

IN_PLACE = INTERVAL
"""The same for a file that was renamed to its place: it is complete."""

WARN_AFTER = 60.0
"""Seconds of continuous changes after which the log reports an unread file."""

MAXIMUM_CERTIFICATE = 1024 * 1024
"""Bytes of a file of certificates that are compared."""

KEYS = ("password_file", "acl_file", "tls_certificate", "tls_key", "client_ca")


class FileState(NamedTuple):
    """The state of a file, which shows changes and how it was put in place."""

    changed: int
    size: int
    inode: int
    moved: bool


Seen = list[FileState | None]
"""The state of each file; None for a missing one."""


def watched(configuration: Configuration) -> list[Path]:
    """Return the files of all listeners, each once."""
    names = [getattr(each, key) for each in configuration.listeners for key in KEYS]
    return [Path(name) for name in dict.fromkeys(names) if name is not None]


class WatchedFiles:
    """The state of the files at a monotonic second; `used` are those in use."""

    def __init__(self, paths: list[Path], now: float) -> None:
        self._paths = paths
        self._used = self._seen = snapshot(paths)
        self._since = [now] * len(paths)
        self._changing_since = now
        self._warned = False

    def note_read(self) -> None:
        """Note that the files are read as they are now."""
        self._used = self._seen = snapshot(self._paths)

    def changed(self, now: float) -> list[Path]:
        """Return the files to read again: none while one of them may be incomplete."""
        before, self._seen = self._seen, snapshot(self._paths)
        for index, (old, new) in enumerate(zip(before, self._seen, strict=True)):
            if old != new:
                self._since[index] = now
        changed = [
            index
            for index, (old, new) in enumerate(zip(self._used, self._seen, strict=True))
            if old != new
        ]
        if not changed:
            self._changing_since, self._warned = now, False
            return []
        if any(now - self._since[index] < self._wait(index) for index in changed):
            self._warn(now, changed)
            return []
        self._used = self._seen
        return [self._paths[index] for index in changed]

    def _wait(self, index: int) -> float:
        """Return for how long the file must be unchanged."""
        seen = self._seen[index]
        if seen is not None and _seems_unfinished(self._paths[index], seen):
            return UNFINISHED
        return IN_PLACE if seen is not None and seen.moved else STILL

    def _warn(self, now: float, changed: list[int]) -> None:
        if now - self._changing_since >= WARN_AFTER and not self._warned:
            self._warned = True
            names = ", ".join(str(self._paths[index]) for index in changed)
            logger.warning("not read, since it changes all the time: %s", names)


class ListenerFiles:
    """Reads the listeners' files again whenever one of them has changed, or on request."""

    def __init__(self, run: Run, core: Core, listeners: Sequence[Listener]) -> None:
        self._run = run
        self._core = core
        self._listeners = listeners
        self._reading = asyncio.Lock()
        self._paths: list[Path] = []
        self._files = WatchedFiles([], 0.0)
        self._certificates = _certificates(run.configuration)
        self._find()

    async def watch(self) -> None:
        """Read changed files while the gateway runs."""
        loop = asyncio.get_running_loop()
        while True:
            await asyncio.sleep(INTERVAL)
            if changed := self._files.changed(loop.time()):
                logger.info("changed: %s", ", ".join(str(path) for path in changed))
                await self.read_again()

    async def read_again(self) -> tuple[list[str], str]:
        """Read all files now; return the changes and the faults, as lines."""
        async with self._reading:
            self._find()
            self._files.note_read()
            changes = await reload_listeners(self._run, self._core, self._listeners)
            lines = changes.lines + self._new_certificates(changes.old_tls)
            return lines, changes.trouble

    def _new_certificates(self, old_tls: set[int]) -> list[str]:
        """Return a line for each changed certificate, except of listeners that do not use it."""
        before, lines = self._certificates, list[str]()
        self._certificates = _certificates(self._run.configuration)
        for file, now in self._certificates.items():
            if file not in before or before[file].content == now.content:
                continue
            if now.listener in old_tls:
                self._certificates[file] = before[file]
                continue
            from gateway.telemetry.certificates import ends

            end = ends(Path(file))
            date = "" if end is None else f", valid until {_day(end)}"
            lines.append(f"listener[{now.listener}].{now.key} has changed: {file}{date}")
            logger.info("%s", lines[-1])
        return lines

    def _find(self) -> None:
        """Watch the files that the present configuration names."""
        paths = watched(self._run.configuration)
        if paths != self._paths:
            self._paths = paths
            self._files = WatchedFiles(paths, asyncio.get_running_loop().time())


class _Certificate(NamedTuple):
    """The hash of a file of certificates, and the first listener and key that name it."""

    content: int
    listener: int
    key: str


def _certificates(configuration: Configuration) -> dict[str, _Certificate]:
    """Return the certificates that listeners show or trust, by file."""
    found: dict[str, _Certificate] = {}
    for index, each in enumerate(configuration.listeners):
        for key in ("tls_certificate", "client_ca"):
            name = getattr(each, key)
            if name is None or name in found:
                continue
            with suppress(OSError), open_named(Path(name)) as file:
                found[name] = _Certificate(hash(file.read(MAXIMUM_CERTIFICATE)), index, key)
    return found


def _day(seconds: float) -> str:
    return datetime.fromtimestamp(seconds, UTC).date().isoformat()


def snapshot(paths: list[Path]) -> Seen:
    """Return the present state of the files."""
    return list(_states(paths))


def _states(paths: list[Path]) -> Iterator[FileState | None]:
    for path in paths:
        try:
            status = path.stat()
        except OSError:
            yield None
        else:
            written = status.st_mtime_ns
            # renaming a file, or changing its owner, comes after its last byte
            moved = status.st_ctime_ns > written
            yield FileState(written, status.st_size, status.st_ino, moved)


def _seems_unfinished(path: Path, seen: FileState) -> bool:
    """Return whether the file is empty or its last line has no end."""
    if not seen.size:
        return True
    try:
        with open_named(path) as file:
            file.seek(-1, 2)
            return file.read(1) != b"\n"
    except OSError:
        return False  # its reader will report that
