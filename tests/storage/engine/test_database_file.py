"""The database's file: what is done about a damaged one, a newer one and a broken one."""

import logging
import re
import sqlite3
from collections.abc import Callable
from pathlib import Path

import pytest

from gateway.clock import Clock
from gateway.errors import StartError
from gateway.salvage.form import PAGE_BYTES
from gateway.storage.engine.database import FILE_NAME, open_database
from gateway.storage.engine.database_file import is_writable_again
from tests.support.disk.storage import open_store, outbox_row

LEAF = 0x0D
"""First byte of a page with the rows of a table."""

INDEX_LEAF = 0x0A
"""First byte of a page with the entries of an index."""


async def _filled(folder: Path) -> Path:
    store = await open_store(folder)
    for seq in range(1, 301):
        store.outbox.add(outbox_row(seq, payload=bytes(2_000)))
    await store.close()
    return folder / FILE_NAME


def _garbage_header(path: Path) -> None:
    path.write_bytes(b"\xde\xad\xbe\xef" * 25 + path.read_bytes()[100:])


def _truncated(path: Path) -> None:
    data = path.read_bytes()
    path.write_bytes(data[: len(data) // 2 + 17])


def _zeroed_page(path: Path) -> None:
    data = bytearray(path.read_bytes())
    middle = len(data) // 2 // PAGE_BYTES * PAGE_BYTES
    while data[middle] != LEAF:  # the zeros of a payload's page would be no damage
        middle += PAGE_BYTES
    data[middle : middle + PAGE_BYTES] = bytes(PAGE_BYTES)
    path.write_bytes(data)


def _index_entry(path: Path) -> None:
    """Let an entry of an index lead to another row."""
    _execute("UPDATE outbox SET indexed = 1, stream = 'of_many'")(path)
    data = bytearray(path.read_bytes())
    pages = range(0, len(data), PAGE_BYTES)
    page = next(
        each
        for each in pages
        if data[each] == INDEX_LEAF and b"of_many" in data[each : each + PAGE_BYTES]
    )
    data[data.find(b"of_many", page) + len("of_many")] ^= 0x40
    path.write_bytes(data)


def _text(path: Path) -> None:
    path.write_text("this was never a database, but it is as long as a small one\n" * 100)


def _execute(*statements: str) -> Callable[[Path], None]:
    def execute(path: Path) -> None:
        connection = sqlite3.connect(path, isolation_level=None)
        for statement in statements:
            connection.execute(statement)
        connection.close()

    return execute


@pytest.mark.uncovered
@pytest.mark.parametrize(
    ("damage", "least", "most"),
    [
        (_garbage_header, 300, 300),
        (_truncated, 130, 160),
        (_zeroed_page, 290, 299),  # as many as a page has
        (_text, 0, 0),
        (_execute("PRAGMA user_version = 99"), 300, 300),
        (
            _execute(
                "PRAGMA writable_schema = ON",
                "UPDATE sqlite_schema SET sql = 'CREATE TABLE outbox (' WHERE name = 'outbox'",
            ),
            300,
            300,
        ),
        (_index_entry, 300, 300),
    ],
    ids=["header", "truncated", "page", "text", "newer", "schema", "index"],
)
async def test_a_damaged_file_is_set_aside_and_its_rows_are_salvaged(
    tmp_path: Path,
    damage: Callable[[Path], None],
    least: int,
    most: int,
    caplog: pytest.LogCaptureFixture,
) -> None:
    path = await _filled(tmp_path)
    damage(path)
    with caplog.at_level(logging.CRITICAL):
        store = await open_store(tmp_path)
    aside = store.database.set_aside
    assert aside is not None
    assert re.fullmatch(r"tidegate\.db\.corrupt-\d{8}T\d{6}Z", aside.name)
    assert aside.exists()
    lines = {record.levelname for record in caplog.records}
    assert lines == {"CRITICAL"}
    assert aside.name in caplog.text
    assert least <= store.outbox.rows <= most
    salvaged = store.database.salvage
    assert salvaged is not None
    assert salvaged.salvaged.get("outbox", 0) == store.outbox.rows
    rows = store.outbox.rows
    store.outbox.add(outbox_row(301))
    await store.close()
    again = await open_store(tmp_path)
    assert again.database.set_aside is None
    assert again.outbox.rows == rows + 1
    await again.close()


def _names(folder: Path) -> list[str]:
    return sorted(entry.name for entry in folder.iterdir())


async def test_the_wal_goes_with_the_file_and_names_do_not_collide(tmp_path: Path) -> None:
    class Still(Clock):
        def wall_ns(self) -> int:
            return 1_763_740_000_000_000_000

    path = tmp_path / FILE_NAME
    for content in (b"first", b"second"):
        path.write_bytes(content * 1000)
        path.with_name(f"{FILE_NAME}-wal").write_bytes(content)
        database = await open_database(tmp_path, Still())
        await database.close()
    names = [name for name in _names(tmp_path) if not name.endswith("-shm")]
    stem = "tidegate.db.corrupt-20251121T154640Z"
    asides = [name for name in names if not name.endswith(".unread")]
    assert asides == [FILE_NAME, stem, f"{stem}-1", f"{stem}-1-wal", f"{stem}-wal"]
    assert (tmp_path / stem).read_bytes() == b"first" * 1000
    assert (tmp_path / f"{stem}-1-wal").read_bytes() == b"second"


def _cut_in_a_rollback(path: Path) -> None:
    """Leave what a power cut leaves of a transaction that has no write-ahead log."""
    connection = sqlite3.connect(path, isolation_level=None)
    connection.execute("PRAGMA journal_mode = DELETE")
    connection.execute("PRAGMA cache_size = 1")  # it writes into the file before the commit
    connection.execute("BEGIN IMMEDIATE")
    connection.execute("DELETE FROM outbox")
    journal = path.with_name(f"{path.name}-journal")
    data = {each: each.read_bytes() for each in (path, journal)}
    assert len(data[journal]) > 512  # else nothing was written
    connection.close()
    for each, left in data.items():
        each.write_bytes(left)


async def test_a_transaction_without_a_log_that_was_cut_is_undone(tmp_path: Path) -> None:
    _cut_in_a_rollback(await _filled(tmp_path))
    store = await open_store(tmp_path)
    assert store.outbox.rows == 300
    assert store.database.salvage is None
    await store.close()


async def test_a_rollback_journal_goes_with_a_damaged_file(tmp_path: Path) -> None:
    path = await _filled(tmp_path)
    _cut_in_a_rollback(path)
    _garbage_header(path)
    for rows in (300, 301):  # the first start sets it aside, the second finds the new one as it is
        store = await open_store(tmp_path)
        assert store.outbox.rows <= rows
        store.outbox.add(outbox_row(rows))
        store.outbox.end_turn()
        await store.close()
    journals = [name for name in _names(tmp_path) if name.endswith("-journal")]
    assert journals == [f"{name}-journal" for name in _names(tmp_path) if name.endswith("Z")]


async def test_what_is_no_damage_ends_the_start_with_its_reason(tmp_path: Path) -> None:
    with pytest.raises(StartError, match=r"missing/tidegate\.db: unable to open database file"):
        await open_database(tmp_path / "missing", Clock())


async def test_a_disk_that_works_again_gives_a_salvaged_database_its_place(tmp_path: Path) -> None:
    """The error came between the renaming of the damaged file and that of the new one."""
    path = await _filled(tmp_path)
    path.rename(tmp_path / f"{FILE_NAME}.salvaged")
    assert is_writable_again(path, Clock())
    store = await open_store(tmp_path)
    assert store.outbox.rows == 300
    await store.close()
