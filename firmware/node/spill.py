"""Samples for which the memory has no room, on the flash: in files of one size, oldest first.

A file is removed when all of it is acknowledged, so that the next start finds what a power cut
left. Each entry keeps the number that it was given when it was put there: sent again after a power
cut, it has the same name.
"""

import os
import struct
from binascii import crc32

from . import const

SEGMENT_BYTES = const(4096)
"""Bytes of a file: what a flash erases at once. As many are in memory before one is written, and
as many are read from there; both are taken at the start, for later a board may have memory enough
and no piece that is large enough."""

_SIZE_MIN = const(2 * SEGMENT_BYTES)

_FRONT_FILES = const(16)
"""Numbers of files that stay free for what the window has when the node is interrupted: it has at
most 7 gaps, and what was to become a file may be behind it."""

_MEMORY_BYTES = const(2 * SEGMENT_BYTES)

_FILE_HEAD = "<IIQH"  # boot id, number of the first entry, clock of the last one, entries
_FILE_HEAD_BYTES = const(18)
_ENTRY_HEAD = "<HH"  # bytes, check
_ENTRY_HEAD_BYTES = const(4)
_ENTRY_MAX = const(_ENTRY_HEAD_BYTES + 320)


class Spill:
    """Keeps numbered entries of up to 320 bytes in at most `size` bytes of files below `folder`.

    When they are full, the oldest file makes room. `dropped` counts the entries that were given up
    for that, or because the flash failed. `boot` is that of the present start. With a `size` of 0
    it only has what an earlier start left, and `grows` is False. ValueError for other sizes below
    SIZE_MIN.

    Files get rising numbers, from `next_file` on; those from `front_file` on are before all others
    of this start.
    """

    def __init__(self, folder: str, size: int, boot: int = 0) -> None:
        if 0 != size < _SIZE_MIN:
            raise ValueError("a spill of %d bytes: at least %d" % (size, _SIZE_MIN))
        self.dropped = 0
        self._folder = folder
        self.files_max = size // SEGMENT_BYTES
        self.grows = size > 0
        self.memory = _MEMORY_BYTES if size else 0
        self._boot = boot
        self._files: list[int] = []  # numbers of the files that were not begun, the oldest first
        self.front_file = 0
        self._ended: dict[int, int] = {}  # by earlier boot id: the last clock that is known of it
        self._find()
        self.next_file = self.front_file + _FRONT_FILES
        self._file: int | None = None  # that is read, None where it never left the memory
        block = SEGMENT_BYTES if size else 0
        self._memory = bytearray(block)  # what is read then
        self._position = 0
        self._reading = (0, 0, 0)  # boot id, first number and entries of it
        self._left = 0  # entries that were not read of what is open
        self._unsettled = 0  # entries that were read of it and not acknowledged
        self._filling = bytearray(block)
        self._filled = 0  # bytes of it
        self._head = (0, 0, 0)  # first number, last clock, entries of it

    @property
    def empty(self) -> bool:
        """Whether there is nothing to take, now or later."""
        return not (self._left or self._files or self._filled)

    @property
    def reads_file(self) -> bool:
        """Whether what was taken last is in a file, and found there by the next start."""
        return self._file is not None

    @property
    def reads_memory(self) -> bool:
        """Whether what is taken next was never in a file."""
        return self._file is None and self._left > 0

    def append(self, sequence: int, clock: int, entry: bytes) -> None:
        """Keep an entry, behind all others; behind a gap in the numbers it begins a file."""
        if not self._filling:
            self._filling = _block()
        size = _ENTRY_HEAD_BYTES + len(entry)
        is_full = _FILE_HEAD_BYTES + self._filled + size > len(self._filling)
        if is_full or sequence != self._head[0] + self._head[2]:
            self.write()
        self._head = (self._head[0] if self._filled else sequence, clock, self._head[2] + 1)
        start = self._filled + _ENTRY_HEAD_BYTES
        head = struct.pack(_ENTRY_HEAD, len(entry), crc32(entry) & 0xFFFF)
        self._filling[self._filled : start] = head
        self._filled += size
        self._filling[start : self._filled] = entry

    def pop(self) -> "tuple[int, int, int, bytes] | None":
        """Return the oldest entry: boot id, number, what its clock is behind ours, and itself.

        None where there is none, it cannot be read, or those before it are not acknowledged.
        """
        if not self._left and not self._begin_next():
            return None
        boot, sequence, count = self._reading
        number = sequence + count - self._left
        entry = self._read_entry()
        if entry is None:
            self.dropped += self._left
            self._left = 0
            self._forget()
            return None
        self._left -= 1
        self._unsettled += 1
        return boot, number, self._ended.get(boot, 0), entry

    def settle(self) -> None:
        """Take note that an entry was acknowledged."""
        self._unsettled -= 1
        self._forget()

    def _read_entry(self) -> "bytes | None":
        data = self._read(_ENTRY_MAX)
        if len(data) < _ENTRY_HEAD_BYTES:
            return None
        size, check = struct.unpack(_ENTRY_HEAD, data[:_ENTRY_HEAD_BYTES])
        entry = data[_ENTRY_HEAD_BYTES : _ENTRY_HEAD_BYTES + size]
        self._position += _ENTRY_HEAD_BYTES + size
        return entry if len(entry) == size and crc32(entry) & 0xFFFF == check else None

    def _read(self, size: int) -> bytes:
        """Return what stands at the position, none of it where the flash fails."""
        if self._file is None:
            return bytes(self._memory[self._position : self._position + size])
        try:
            with open(self._path(self._file), "rb") as file:
                file.seek(self._position)
                data: bytes = file.read(size)
                return data
        except OSError:
            return b""

    def _begin_next(self) -> bool:
        """Begin the oldest file, or what waits to become one; forget the one before."""
        if self._unsettled:
            return False
        if self._files:
            self._file = self._files.pop(0)
            head = self._read_head(self._file)
            self._position = _FILE_HEAD_BYTES
            if head is not None:
                self._reading = (head[0], head[1], head[3])
                self._left = head[3]
            self._forget()  # what was never whole
        elif self._filled:
            self._memory, self._filling = self._filling, self._memory
            self._reading = (self._boot, self._head[0], self._head[2])
            self._left = self._head[2]
            self._empty_filling()
        return self._left > 0

    def _forget(self) -> None:
        """Remove what was read, once all of it is acknowledged."""
        if self._left or self._unsettled:
            return
        if self._file is not None:
            self._remove(self._file)
            self._file = None
        self._position = 0

    def write(self) -> None:
        """Make a file of what waits to become one."""
        if not self._filled:
            return
        if len(self._files) + (self._file is not None) >= self.files_max and self._files:
            oldest = self._files.pop(0)
            head = self._read_head(oldest)
            self.dropped += 0 if head is None else head[3]
            self._remove(oldest)
        sequence, clock, count = self._head
        try:
            with open(self._path(self.next_file), "wb") as file:
                file.write(struct.pack(_FILE_HEAD, self._boot, sequence, clock, count))
                file.write(memoryview(self._filling)[: self._filled])
            self._files.append(self.next_file)
            self.next_file += 1
        except OSError:
            self.dropped += count
        self._empty_filling()

    def _empty_filling(self) -> None:
        self._filled = 0
        self._head = (0, 0, 0)

    def _read_head(self, number: int) -> "tuple[int, int, int, int] | None":
        """Return boot id, first number, last clock and entries of a file, None if it has none."""
        try:
            with open(self._path(number), "rb") as file:
                data = file.read(_FILE_HEAD_BYTES)
        except OSError:
            return None
        if len(data) < _FILE_HEAD_BYTES:
            return None
        boot, sequence, clock, count = struct.unpack(_FILE_HEAD, data)
        return boot, sequence, clock, count

    def _remove(self, number: int) -> None:
        try:
            os.remove(self._path(number))
        except OSError:  # sent again at the next start, and known to the gateway by its name
            pass

    def _path(self, number: int) -> str:
        return "%s/%d" % (self._folder, number)

    def _find(self) -> None:
        """Learn what an earlier start left."""
        try:
            os.mkdir(self._folder)
        except OSError:  # it is there
            pass
        try:
            names = os.listdir(self._folder)
        except OSError:  # a flash that fails here fails when it is written, where that is counted
            return
        self._files = sorted([int(name) for name in names if name.isdigit()])
        for number in self._files:
            head = self._read_head(number)
            if head is not None:
                self._ended[head[0]] = max(self._ended.get(head[0], 0), head[2])
        self.front_file = self._files[-1] + 1 if self._files else 0


def _block() -> bytearray:
    """Return memory for a file: as much as a file may have, or the half, and so on."""
    size = SEGMENT_BYTES
    while True:
        try:
            return bytearray(size)
        except MemoryError:
            if size <= _FILE_HEAD_BYTES + _ENTRY_MAX:
                raise
            size //= 2
