"""Cuts a stream of bytes at a delimiter, with a bound on what is kept of an unended piece."""


class Splitter:
    """Collects bytes up to the next delimiter; what grows beyond `limit` is skipped to its end.

    `skipped` counts the bytes given up since the start.
    """

    __slots__ = ("_delimiter", "_limit", "_overlong", "_pending", "skipped")

    def __init__(self, delimiter: bytes, limit: int) -> None:
        self._delimiter = delimiter
        self._limit = limit
        self._pending = bytearray()
        self._overlong = False
        self.skipped = 0

    def feed(self, data: bytes) -> list[bytes]:
        """Return the pieces that `data` ends, without delimiters, the empty ones left out."""
        first, *later = data.split(self._delimiter)
        pieces = []
        self._extend(first)
        for piece in later:
            if self._pending:
                pieces.append(bytes(self._pending))
                self._pending.clear()
            self._overlong = False
            self._extend(piece)
        return pieces

    def _extend(self, data: bytes) -> None:
        if self._overlong:
            self.skipped += len(data)
            return
        self._pending += data
        if len(self._pending) > self._limit:
            self.skipped += len(self._pending)
            self._pending.clear()
            self._overlong = True
