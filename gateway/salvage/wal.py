"""Reads the write-ahead log of a database frame by frame (sqlite.org/fileformat2.html, 4)."""

import struct
from dataclasses import dataclass, field
from pathlib import Path
from typing import BinaryIO

from gateway.salvage.form import PAGE_BYTES, size_in_log

HEADER_BYTES, FRAME_HEADER_BYTES = 32, 24

_MAGIC = 0x377F0682
"""The lowest bit means that checksums read words most significant byte first."""

_ORDERS = "<>"
"""The byte order of words in checksums, by that bit."""

_VERSION = 3_007_000
"""The format version of every log."""

_HEADER_SUMS = 24
"""The offset of the header's checksum, which covers everything before it."""

_WORD = 0xFFFFFFFF


@dataclass(slots=True)
class Log:
    """What a log adds to its database.

    `pages` has the offset in the log of each page's newest content, `page_count` how many pages the
    database has after its last transaction, None without any. `damaged` counts bad frames in the
    middle, and the header if it is bad: SQLite would stop at the first of them, and silently lose
    what was committed after it.
    """

    pages: dict[int, int] = field(default_factory=dict)
    page_count: int | None = None
    damaged: int = 0


def read_log(path: Path, page_bytes: int = PAGE_BYTES) -> Log:
    """Return the content of the log at `path`; nothing if it does not exist or is unreadable.

    `page_bytes` is the size of its pages, if its own header is damaged.
    """
    log = Log()
    try:
        with path.open("rb") as file:
            _read_frames(file, log, page_bytes)
    except OSError:
        return log  # what was read is of use
    return log


def log_size(path: Path) -> int:
    """Return the page size in a sound header of the log at `path`, else 0."""
    try:
        with path.open("rb") as file:
            header = file.read(HEADER_BYTES)
    except OSError:
        return 0
    return size_in_log(header) if _Reader.of(header) is not None else 0


def frame_bytes(page_bytes: int = PAGE_BYTES) -> int:
    """Return the size of a frame: a page after its header."""
    return FRAME_HEADER_BYTES + page_bytes


def page_numbers(path: Path, frames: int, page_bytes: int) -> set[int]:
    """Return the numbers of the pages in the first `frames` of a log; raise OSError."""
    found = set()
    step = frame_bytes(page_bytes)
    with path.open("rb") as file:
        for offset in range(HEADER_BYTES, HEADER_BYTES + frames * step, step):
            file.seek(offset)
            found.add(int.from_bytes(file.read(4), "big"))
    return found


def _read_frames(file: BinaryIO, log: Log, page_bytes: int) -> None:
    header = file.read(HEADER_BYTES)
    reader = _Reader.of(header)
    if reader is not None:
        page_bytes = size_in_log(header)
    length = frame_bytes(page_bytes)
    frame = file.read(length)
    if len(frame) < length:
        return
    is_sound = reader is not None
    if reader is None:
        reader = _Reader.without_header(header, frame)
    offset = HEADER_BYTES
    while len(frame) == length:
        reader.add_frame(frame, offset + FRAME_HEADER_BYTES, log)
        offset += length
        frame = file.read(length)
    # A header of zeros belongs to a log that the file system had extended, but not yet written.
    if not is_sound and (any(header) or log.page_count is not None):
        log.damaged += 1


class _Reader:
    """Follows the frames of one generation, past damaged ones.

    A frame's checksum continues from the one stored in the frame before, so the chain is found
    again after a damaged frame. A transaction with such a frame counts if a frame of a later one
    follows: SQLite began that after the earlier was synced, so the frame was once valid. Otherwise
    it is the torn end of a log, and none of it was acknowledged.
    """

    def __init__(self, order: str, salts: bytes, sums: tuple[int, int]) -> None:
        self._order = order
        self._salts = salts
        self._sums = sums
        self._pages: dict[int, int] = {}
        self._bad = 0
        self._held: tuple[dict[int, int], int, int] | None = None

    @classmethod
    def of(cls, header: bytes) -> "_Reader | None":
        """Return one that begins after this header; None for one that SQLite does not accept."""
        if len(header) < HEADER_BYTES:
            return None
        magic, version = struct.unpack_from(">2I", header)
        if (magic & ~1, version) != (_MAGIC, _VERSION) or not size_in_log(header):
            return None
        sums = struct.unpack_from(">2I", header, _HEADER_SUMS)
        order = _ORDERS[magic & 1]
        is_sound = _checksum(order, (0, 0), header[:_HEADER_SUMS]) == sums
        return cls(order, header[16:24], sums) if is_sound else None

    @classmethod
    def without_header(cls, header: bytes, frame: bytes) -> "_Reader":
        """Return one that reconstructs a damaged header from the first frame.

        It uses the header's checksum that fits the frame: the stored one, or that of a header with
        the frame's salts.
        """
        salts = frame[8:16]
        stored = struct.unpack_from(">2I", header, _HEADER_SUMS)
        readers = []
        page_bytes = len(frame) - FRAME_HEADER_BYTES
        for low_bit, order in enumerate(_ORDERS):
            known = struct.pack(">3I", _MAGIC | low_bit, _VERSION, page_bytes)
            made_up = _checksum(order, (0, 0), known + header[12:16] + salts)
            readers += [cls(order, salts, stored), cls(order, salts, made_up)]
        return next((each for each in readers if each.continues_with(frame)), readers[0])

    def add_frame(self, frame: bytes, index: int, log: Log) -> None:
        """Add the next frame, whose page begins at this offset of the file."""
        number, page_count = struct.unpack_from(">2I", frame)
        ours = frame[8:16] == self._salts
        good = ours and self.continues_with(frame)
        # the stored sum, even if it is wrong: the next frame continues from it
        self._sums = struct.unpack_from(">2I", frame, 16)
        if not good:
            self._bad += 1
            if ours and page_count:
                self._commit(log, page_count)
            return
        # a valid frame follows: the held transaction was synced before
        if self._held is not None:
            pages, count, bad = self._held
            log.damaged += bad
            self._apply(log, pages, count)
            self._held = None
        self._pages[number] = index
        if page_count:
            self._commit(log, page_count)

    def _commit(self, log: Log, page_count: int) -> None:
        if self._bad:
            pages, _, bad = self._held or ({}, 0, 0)
            self._held = (pages | self._pages, page_count, bad + self._bad)
        else:
            self._apply(log, self._pages, page_count)
        self._pages, self._bad = {}, 0

    @staticmethod
    def _apply(log: Log, pages: dict[int, int], page_count: int) -> None:
        log.pages.update(pages)
        log.page_count = page_count

    def continues_with(self, frame: bytes) -> bool:
        """Return whether the frame is valid, and the next one of the chain."""
        checked = frame[:8] + frame[FRAME_HEADER_BYTES:]
        return _checksum(self._order, self._sums, checked) == struct.unpack_from(">2I", frame, 16)


def _checksum(order: str, sums: tuple[int, int], checked: bytes) -> tuple[int, int]:
    """Return a chain's next checksum, of a multiple of 8 bytes."""
    first, second = sums
    words = iter(struct.unpack(f"{order}{len(checked) // 4}I", checked))
    for word in words:
        first = (first + word + second) & _WORD
        second = (second + next(words) + first) & _WORD
    return first, second
