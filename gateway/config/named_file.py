"""Files that the configuration names, and secrets in them, some of them credentials of systemd."""

import codecs
import errno
import os
import stat
from pathlib import Path
from typing import BinaryIO


def open_named(path: Path) -> BinaryIO:
    """Open a file to be read; raise OSError if it cannot be, or is no regular file.

    Opening a pipe would wait for a writer and block everything.
    """
    descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    mode = os.fstat(descriptor).st_mode
    if stat.S_ISREG(mode):
        return os.fdopen(descriptor, "rb")
    os.close(descriptor)
    if stat.S_ISDIR(mode):
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), str(path))
    raise OSError(errno.EINVAL, "no regular file", str(path))


def without_mark(data: bytes) -> bytes:
    """Return the data without the byte order mark of Windows' editors."""
    return data.removeprefix(codecs.BOM_UTF8)


PREFIX = "credential:"
"""Prefix of a credential's name in a configuration (systemd's LoadCredential=)."""

FOLDER = "CREDENTIALS_DIRECTORY"
"""The environment variable with the credentials' folder."""


def secret_path(text: str) -> Path:
    """Return the file that a configuration names; raise ValueError for an unknown credential."""
    if not text.startswith(PREFIX):
        return Path(text)
    name, folder = text.removeprefix(PREFIX), os.environ.get(FOLDER)
    if not name or "/" in name or name.startswith("."):
        raise ValueError("a credential's name behind credential:, without slashes")
    if not folder:
        raise ValueError(f"a file: there are no credentials here, since ${FOLDER} is not set")
    return Path(folder) / name
