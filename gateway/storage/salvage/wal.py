"""The write-ahead log of a database, read frame by frame (sqlite.org/fileformat2.html, 4)."""

import struct
from dataclasses import dataclass, field
from pathlib import Path

PAGE_BYTES = 4096
"""The page size of every database that the gateway has made."""

HEADER_BYTES, FRAME_HEADER_BYTES = 32, 24
FRAME_BYTES = FRAME_HEADER_BYTES + PAGE_BYTES

_MAGIC = 0x377F0682
"""The lowest bit says that checksums read the words most significant byte first."""

_WORD = 0xFFFFFFFF


@dataclass(slots=True)
class Log:
    """What a log adds to its database.

    `pages` says where in the log the newest content of each page begins, `page_count` how many
    pages the database has after its last transaction, None without any. `damaged` counts the
    frames in the middle that cannot be trusted: SQLite would stop at the first of them, and
    what was committed behind it would be gone without a word.
    """

    pages: dict[int, int] = field(default_factory=dict)
    page_count: int | None = None
    damaged: int = 0


def read_log(path: Path) -> Log:
    """Return what the log at `path` holds; nothing when there is none or it cannot be read."""
    log = Log()
    try:
        with path.open("rb") as file:
            header = file.read(HEADER_BYTES)
            reader = _Reader.of(header)
            if reader is None:
                return log
            place = HEADER_BYTES
            while len(frame := file.read(FRAME_BYTES)) == FRAME_BYTES:
                reader.take(frame, place + FRAME_HEADER_BYTES, log)
                place += FRAME_BYTES
    except OSError:
        return log  # what was read is of use
    return log


class _Reader:
    """Follows the frames of one generation, past those that are damaged.

    The checksum of a frame goes on from the one that the frame before it says, so that the
    chain is found again behind a damaged frame. A transaction with such a frame counts when a
    frame of a later one follows: SQLite began that after the earlier was synced, so the frame
    was whole once. Otherwise it is the torn end of a log, and nothing of it was promised.
    """

    def __init__(self, order: str, salts: bytes, sums: tuple[int, int]) -> None:
        self._words = struct.Struct(f"{order}{(8 + PAGE_BYTES) // 4}I")
        self._salts = salts
        self._sums = sums
        self._pages: dict[int, int] = {}
        self._bad = 0
        self._held: tuple[dict[int, int], int, int] | None = None

    @classmethod
    def of(cls, header: bytes) -> "_Reader | None":
        if len(header) < HEADER_BYTES:
            return None
        magic, _, page_bytes = struct.unpack_from(">3I", header)
        if magic & ~1 != _MAGIC or page_bytes != PAGE_BYTES:
            return None
        return cls(">" if magic & 1 else "<", header[16:24], struct.unpack_from(">2I", header, 24))

    def take(self, frame: bytes, place: int, log: Log) -> None:
        number, page_count = struct.unpack_from(">2I", frame)
        expected = struct.unpack_from(">2I", frame, 16)
        ours = frame[8:16] == self._salts
        good = ours and self._checksum(frame) == expected
        self._sums = expected
        if not good:
            self._bad += 1
            if ours and page_count:
                self._commit(log, page_count)
            return
        if self._held is not None:
            pages, count, bad = self._held
            log.damaged += bad
            self._apply(log, pages, count)
            self._held = None
        self._pages[number] = place
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

    def _checksum(self, frame: bytes) -> tuple[int, int]:
        first, second = self._sums
        words = iter(self._words.unpack(frame[:8] + frame[FRAME_HEADER_BYTES:]))
        for word in words:
            first = (first + word + second) & _WORD
            second = (second + next(words) + first) & _WORD
        return first, second
