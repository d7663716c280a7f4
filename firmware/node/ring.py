"""A queue of byte strings in one block of memory; each is kept as its difference to the one before.

A node's samples resemble each other: of 26 bytes of a sample some 3 change.
"""

BODY_MAX = 512
"""Bytes of one entry."""

SIZE_MIN = 2 + BODY_MAX // 64 + BODY_MAX // 8 + BODY_MAX
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
        size = self._take()
        if size & 0x80:
            size = size & 0x7F | self._take() << 7
        body = bytearray(self._first[:size])
        body.extend(bytes(size - len(body)))
        groups = [self._take() for _ in range(_groups(_groups(size)))]
        for group in range(_groups(size)):
            if groups[group // 8] >> group % 8 & 1:
                mask = self._take()
                for bit in range(8):
                    if mask >> bit & 1:
                        body[8 * group + bit] = self._take()
        self._count -= 1
        self._first = bytes(body)
        return self._first

    def _take(self) -> int:
        byte = self._memory[self._start]
        self._start = (self._start + 1) % len(self._memory)
        self._used -= 1
        return byte


def _groups(count: int) -> int:
    """Return how many groups of eight hold `count`."""
    return (count + 7) // 8


def _difference(before: bytes, body: bytes) -> bytes:
    """Return how `body` differs from `before`, which is cut or filled with zeros to its size.

    The size comes first, in 1 or 2 bytes; then a bit for each group of eight bytes; then, for each
    group with a change, a bit for each of its bytes and the bytes that changed.
    """
    size = len(body)
    before = before[:size] + bytes(max(0, size - len(before)))
    head = bytearray([size] if size < 0x80 else [size & 0x7F | 0x80, size >> 7])
    groups = bytearray(_groups(_groups(size)))
    changes = bytearray()
    for group in range(_groups(size)):
        mask, changed = 0, bytearray()
        for position in range(8 * group, min(8 * group + 8, size)):
            if body[position] != before[position]:
                mask |= 1 << position % 8
                changed.append(body[position])
        if mask:
            groups[group // 8] |= 1 << group % 8
            changes.append(mask)
            changes.extend(changed)
    return bytes(head + groups + changes)
