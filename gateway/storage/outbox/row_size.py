"""What a row of the outbox takes of the file: SQLite's pages, as its file format lays them out.

The numbers are those of "Database File Format" (sqlite.org/fileformat2.html, section 1.6) for
the gateway's pages in an auto-vacuum database.
"""

from gateway.salvage.form import PAGE_BYTES
from gateway.storage.outbox.outbox_row import OutboxRow

LEAF = PAGE_BYTES - 8
"""Bytes of a leaf page behind its header."""

LARGEST_LOCAL = PAGE_BYTES - 35
"""Bytes of the largest record that has no overflow page."""

SMALLEST_LOCAL = (PAGE_BYTES - 12) * 32 // 255 - 23
"""Bytes of a larger record that stay in the leaf at least."""

OVERFLOW = PAGE_BYTES - 4
"""Bytes of a record that an overflow page holds."""

RECORD_OVERHEAD = 42
"""Bytes of a record beside its texts and blobs: header, row id, and the integers."""

CELL_OVERHEAD = 8
"""Bytes of a leaf beside the record: its pointer and length, the row id, an overflow page."""

PAIR_OVERHEAD = 7
"""Bytes that JSON puts around the name and value of a user property."""

TREE_SHARE = 32
"""One page in so many stands above the leaves, or says where pages are (pointer map)."""

INDEX_ENTRY = 16
"""Bytes of an entry of the index of streams beside the stream's name, and of one that expires."""


def row_size(row: OutboxRow) -> int:
    """Return the bytes that `row` takes of the file, its part of half empty pages included.

    Rows that leave in another order than they came leave gaps until their neighbours go too;
    SQLite merges a page with its neighbours when two thirds of it are empty.
    """
    record = RECORD_OVERHEAD + len(row.payload) + _length(row.topic)
    record += len(row.epoch) + len(row.stream) + len(row.lane) + len(row.correlation_data or b"")
    for text in (row.content_type, row.response_topic, row.client_id, row.username):
        if text:
            record += _length(text)
    for name, value in row.user_properties:
        record += PAIR_OVERHEAD + _length(name) + _length(value)
    size = _pages(record)
    if row.message_expiry is not None:
        size += INDEX_ENTRY
    return size + size // TREE_SHARE + INDEX_ENTRY + len(row.stream)


def _pages(record: int) -> int:
    if record <= LARGEST_LOCAL:
        return _share_of_leaf(record)
    local = SMALLEST_LOCAL + (record - SMALLEST_LOCAL) % OVERFLOW
    if local > LARGEST_LOCAL:
        local = SMALLEST_LOCAL
    return _share_of_leaf(local) + PAGE_BYTES * -(-(record - local) // OVERFLOW)


def _share_of_leaf(local: int) -> int:
    """Return the share of a leaf page that is filled with such cells."""
    return PAGE_BYTES // (LEAF // (local + CELL_OVERHEAD) or 1)


def _length(text: str) -> int:
    return len(text) if text.isascii() else len(text.encode())
