"""Files that the configuration names."""

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
