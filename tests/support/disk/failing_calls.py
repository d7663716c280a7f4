"""Makes calls of this process on the files below a folder fail, counted from the first."""

import errno
import io
import os
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

ERRORS = (errno.EIO, errno.ENOSPC, errno.EROFS, errno.EACCES, errno.ENOENT)
"""What a disk, its file system or somebody at it makes of a call."""

BY_PATH = ("open", "rename", "unlink", "mkdir", "lstat", "statvfs")
BY_DESCRIPTOR = ("write", "fsync", "fdatasync", "fstat", "ftruncate", "close")

SHORT = 0
"""Instead of an error: a write takes half of what it is given."""


class FailingCalls:
    """Counts the calls below a folder; those whose number `fails` accepts fail with `error`.

    They are numbered from 0, those `only` that have these names. What the gateway does with files
    it does in threads: calls of the main thread are the test's own.

    `seen` has the name of each call, `failed` of those that failed.
    """

    def __init__(self, monkeypatch: pytest.MonkeyPatch, folder: Path) -> None:
        self.seen: list[str] = []
        self.failed: list[str] = []
        self.error = errno.EIO
        self.fails: Callable[[int], bool] = lambda number: False
        self.only: tuple[str, ...] = (*BY_PATH, *BY_DESCRIPTOR)
        self._numbered = 0
        self._folder = str(folder)
        self._descriptors: set[int] = set()
        for name in BY_PATH:
            monkeypatch.setattr(os, name, self._by_path(name, getattr(os, name)))
        monkeypatch.setattr(io, "open", self._by_path("open", io.open))
        for name in BY_DESCRIPTOR:
            monkeypatch.setattr(os, name, self._by_descriptor(name, getattr(os, name)))

    def _count(self, name: str) -> bool:
        """Return whether this call fails."""
        fails = name in self.only and self.fails(self._numbered)
        self._numbered += name in self.only
        self.seen.append(name)
        if fails:
            self.failed.append(name)
        return fails

    def _by_path(self, name: str, call: Callable[..., Any]) -> Callable[..., Any]:
        def counted(path: Any, *arguments: Any, **named: Any) -> Any:
            concerns = isinstance(path, str | Path) and str(path).startswith(self._folder)
            concerns = concerns and not _is_of_the_test()
            if concerns and self._count(name) and self.error != SHORT:
                raise OSError(self.error, os.strerror(self.error), str(path))
            result = call(path, *arguments, **named)
            if concerns and name == "open":
                self._descriptors.add(result if isinstance(result, int) else result.fileno())
            return result

        return counted

    def _by_descriptor(self, name: str, call: Callable[..., Any]) -> Callable[..., Any]:
        def counted(descriptor: int, *arguments: Any) -> Any:
            if descriptor not in self._descriptors:
                return call(descriptor, *arguments)
            fails = self._count(name)
            if name == "close":  # Linux closes a file whatever it says of it
                self._descriptors.discard(descriptor)
                call(descriptor)
            if fails and self.error == SHORT and name == "write":
                return call(descriptor, arguments[0][: max(1, len(arguments[0]) // 2)])
            if fails and self.error != SHORT:
                raise OSError(self.error, os.strerror(self.error))
            return None if name == "close" else call(descriptor, *arguments)

        return counted


def _is_of_the_test() -> bool:
    return threading.current_thread() is threading.main_thread()
