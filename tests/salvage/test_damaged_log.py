"""A damaged write-ahead log costs no page that it does not hold."""

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gateway.salvage.wal import HEADER_BYTES, frame_bytes, read_log
from tests.support.disk.damaged_database import PAGE, Known
from tests.support.disk.salvaged import missing, salvaged


@pytest.mark.uncovered
@settings(max_examples=settings().max_examples // 3)
@given(frame=st.integers(0, 10_000), seed=st.integers(0, 1 << 30))
def test_a_damaged_frame_of_the_log_costs_no_other_page(
    tmp_path_factory: pytest.TempPathFactory, left_open: Known, frame: int, seed: int
) -> None:
    frame %= left_open.frame_count
    start = HEADER_BYTES + frame * frame_bytes()
    page = int.from_bytes(left_open.log[start : start + 4], "big")
    log = bytearray(left_open.log)
    log[start + 24 + seed % PAGE] ^= 1 + seed % 255
    _, rows = salvaged(tmp_path_factory.getbasetemp(), left_open.database, bytes(log))
    expected = left_open.expected({page, *_pages_of_last_transaction(left_open, frame)})
    assert not missing(expected, rows)


@pytest.mark.uncovered
@pytest.mark.parametrize("byte", [0, 3, 6, 10, 13, 18, 22, 25, 31])
def test_a_damaged_header_of_the_log_costs_nothing(
    tmp_path: Path, left_open: Known, byte: int
) -> None:
    log = bytearray(left_open.log)
    log[byte] ^= 1 << byte % 8
    _, rows = salvaged(tmp_path, left_open.database, bytes(log))
    assert rows == left_open.rows
    assert read_log(tmp_path / "damaged.db-wal").damaged == 1


def test_a_log_of_another_database_costs_nothing(tmp_path: Path, known: Known) -> None:
    path = tmp_path / "other.db"
    with closing(sqlite3.connect(path, isolation_level=None)) as other:
        other.execute(f"PRAGMA page_size = {PAGE}")
        other.execute("PRAGMA journal_mode = WAL")
        other.execute("CREATE TABLE of_somebody (x)")
        log = path.with_name("other.db-wal").read_bytes()
    result, rows = salvaged(tmp_path, known.database, log)
    assert rows == known.rows
    assert not result.lost


@pytest.mark.parametrize(
    ("log", "damaged"),
    [
        (b"", 0),
        (bytes(HEADER_BYTES), 0),
        (bytes(HEADER_BYTES + 3 * frame_bytes()), 0),  # made longer before a power cut, not written
        (b"?" * HEADER_BYTES, 0),  # torn when it was made: nothing was committed yet
        (b"?" * (HEADER_BYTES + frame_bytes()), 1),
    ],
)
def test_a_log_that_says_nothing(tmp_path: Path, log: bytes, damaged: int) -> None:
    (tmp_path / "x-wal").write_bytes(log)
    found = read_log(tmp_path / "x-wal")
    assert (found.pages, found.page_count, found.damaged) == ({}, None, damaged)


def _pages_of_last_transaction(known: Known, frame: int) -> set[int]:
    """Return the pages of the last transaction, which nobody can prove was whole, if hit."""
    frames = [HEADER_BYTES + number * frame_bytes() for number in range(known.frame_count)]
    commits = [n for n, start in enumerate(frames) if any(known.log[start + 4 : start + 8])]
    before = max((n for n in commits[:-1] if n < commits[-1]), default=-1)
    if frame <= before:
        return set()
    return {int.from_bytes(known.log[start : start + 4], "big") for start in frames[before + 1 :]}
