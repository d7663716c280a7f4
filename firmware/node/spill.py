"""Samples for which the memory has no room, on the flash: in files of one size, oldest first.

It is more room for one start of the node; the next one begins with none.
"""

import os

SEGMENT_BYTES = 4096
"""Bytes of a file: what a flash erases at once. As many are in memory before one is written, and
while one is read."""

SIZE_MIN = 2 * SEGMENT_BYTES


class Spill:
    """Keeps entries of up to 320 bytes in at most `size` bytes of files below `folder`.

    When they are full, the oldest file makes room. `dropped` counts the entries that were given up
    for that, or because the flash failed. ValueError for fewer than SIZE_MIN bytes.
    """

    def __init__(self, folder: str, size: int) -> None:
        if size < SIZE_MIN:
            raise ValueError("a spill of %d bytes: at least %d" % (size, SIZE_MIN))
        self.dropped = 0
        self._folder = folder
        self._files_max = size // SEGMENT_BYTES
        self._counts: list[int] = []  # entries of each file, the oldest first
        self._oldest = 0  # number of the oldest file
        self._reading = b""
        self._position = 0
        self._left = 0  # entries behind the position
        self._filling = bytearray()
        self._filled = 0
        self._clear()

    def __len__(self) -> int:
        """Return the number of entries."""
        return self._left + sum(self._counts) + self._filled

    def append(self, entry: bytes) -> None:
        """Keep an entry, behind all others."""
        if len(self._filling) + 2 + len(entry) > SEGMENT_BYTES:
            self._write()
        self._filling += len(entry).to_bytes(2, "little") + entry
        self._filled += 1

    def pop(self) -> "bytes | None":
        """Remove and return the oldest entry; None where there is none, or it cannot be read."""
        if not self._left:
            self._read()
        if not self._left:
            return None
        start = self._position + 2
        end = start + int.from_bytes(self._reading[self._position : start], "little")
        self._position = end
        self._left -= 1
        return self._reading[start:end]

    def _write(self) -> None:
        if len(self._counts) == self._files_max:
            self.dropped += self._counts.pop(0)
            self._remove()
        try:
            with open(self._path(self._oldest + len(self._counts)), "wb") as file:
                file.write(self._filling)
            self._counts.append(self._filled)
        except OSError:
            self.dropped += self._filled
        self._filling = bytearray()
        self._filled = 0

    def _read(self) -> None:
        """Take the oldest file, or what waits to become one."""
        self._position = 0
        if not self._counts:
            self._reading, self._left = bytes(self._filling), self._filled
            self._filling, self._filled = bytearray(), 0
            return
        count = self._counts.pop(0)
        try:
            with open(self._path(self._oldest), "rb") as file:
                self._reading = file.read(SEGMENT_BYTES)
            self._left = count
        except OSError:
            self.dropped += count
        self._remove()

    def _remove(self) -> None:
        try:
            os.remove(self._path(self._oldest))
        except OSError:  # it is written over when its number comes again, after the next start
            pass
        self._oldest += 1

    def _path(self, number: int) -> str:
        return "%s/%d" % (self._folder, number)

    def _clear(self) -> None:
        """Remove what an earlier start left."""
        try:
            os.mkdir(self._folder)
        except OSError:  # it is there
            pass
        try:
            for name in os.listdir(self._folder):
                os.remove(self._folder + "/" + name)
        except OSError:  # a flash that fails here fails when it is written, where that is counted
            pass
