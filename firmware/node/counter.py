"""Numbers of which none comes twice, whatever starts and power cuts lie between."""

from . import const, files

_BLOCK = const(4096)
"""Numbers that are reserved at a time: as many are left out at a start, at most."""

_FIRST = const(4096)
"""Receivers take numbers below 100 for those of a device that counts anew, again and again."""

_COUNT_MAX = const((1 << 32) - 1)


class Counter:
    """Counts up; the file `path` says where the next start begins.

    OSError where it cannot be read or written: a number might come again then.
    """

    def __init__(self, path: str) -> None:
        self._path = path
        content = files.read(path, 11)
        try:
            self._next = self._reserved = int(content) if content is not None else _FIRST
        except ValueError:
            raise OSError("%s is no number" % path) from None

    def count(self) -> int:
        """Return the next number."""
        if self._next == self._reserved:
            if self._reserved + _BLOCK > _COUNT_MAX:
                raise OSError("no number is left")
            files.replace(self._path, str(self._reserved + _BLOCK).encode())
            self._reserved += _BLOCK
        self._next += 1
        return self._next - 1
