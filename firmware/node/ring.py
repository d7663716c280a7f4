"""A queue of byte strings in one block of memory; each is kept as its difference to the one before.

A node's samples resemble each other: of 26 bytes of a sample some 4 change.
"""

import struct

BODY_MAX = 512
"""Bytes of one entry."""

SIZE_MIN = 2 + BODY_MAX // 8 + BODY_MAX
"""Bytes of memory into which any one entry fits."""


class Ring:
    """Holds as many of the newest entries as fit into `size` bytes, all taken at the start.

    ValueError for fewer than SIZE_MIN bytes.
    """

    def __init__(self, size: int) -> None:
        if size < SIZE_MIN:
            raise ValueError("a buffer of %d bytes: at least %d" % (size, SIZE_MIN))
        self._memory = bytearray(size)
        self._start = 0
        self._used = 0
        self._count = 0
        self._first = b""  # what the oldest entry is the difference to
        self._last = b""

    def __len__(self) -> int:
        """Return the number of entries."""
        return self._count

    def append(self, body: bytes) -> int:
        """Keep an entry; return how many of the oldest were given up for it.

        ValueError beyond BODY_MAX bytes.
        """
        if len(body) > BODY_MAX:
            raise ValueError("an entry of %d bytes: at most %d" % (len(body), BODY_MAX))
        record = _difference(self._last, body)
        dropped = 0
        while self._used + len(record) > len(self._memory):
            self.pop()
            dropped += 1
        for byte in record:
            self._memory[(self._start + self._used) % len(self._memory)] = byte
            self._used += 1
        self._count += 1
        self._last = body
        return dropped

    def pop(self) -> bytes:
        """Remove and return the oldest entry; IndexError when there is none."""
        if not self._count:
            raise IndexError("the buffer is empty")
        (size,) = struct.unpack("<H", self._take(2))
        mask = self._take((size + 7) // 8)
        body = bytearray(self._first[:size])
        body.extend(bytes(size - len(body)))
        for position in range(size):
            if mask[position // 8] >> position % 8 & 1:
                body[position] = self._take(1)[0]
        self._count -= 1
        self._first = bytes(body)
        return self._first

    def _take(self, count: int) -> bytes:
        taken = bytearray(count)
        for position in range(count):
            taken[position] = self._memory[self._start]
            self._start = (self._start + 1) % len(self._memory)
        self._used -= count
        return bytes(taken)


def _difference(before: bytes, body: bytes) -> bytes:
    """Return the size of `body`, a bit for each byte that differs, and those bytes."""
    mask = bytearray((len(body) + 7) // 8)
    changed = bytearray()
    for position in range(len(body)):
        if body[position] != (before[position] if position < len(before) else 0):
            mask[position // 8] |= 1 << position % 8
            changed.append(body[position])
    return struct.pack("<H", len(body)) + bytes(mask) + bytes(changed)
