"""Batches that the disk refuses are kept and tried again."""

from pathlib import Path

import pytest

import gateway.storage.engine.writer as attempts_module
from tests.support.disk.storage import Store, meta_names, open_store, until

INSERT = "INSERT INTO meta VALUES (?, ?)"
BLOB = "INSERT INTO node_frames VALUES (?, 0, 0, 0, ?)"


async def _fill_the_disk(store: Store) -> None:
    """Allow the file no further page: SQLITE_FULL, as on a full disk."""
    pages = await store.database.writer.query("PRAGMA page_count", (), lambda c: c.fetchone()[0])
    await store.database.writer.query(f"PRAGMA max_page_count = {pages}", (), list)


async def _free_the_disk(store: Store) -> None:
    await store.database.writer.query("PRAGMA max_page_count = 1000000", (), list)


async def test_a_full_disk_refuses_until_there_is_room_and_loses_nothing(
    store: Store, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(attempts_module, "FIRST_RETRY", 0.01)
    await _fill_the_disk(store)
    store.writer.add(BLOB, (1, bytes(100_000)))
    store.writer.hand_over()
    await until(lambda: store.counters.count("tidegate/storage/failures") >= 3)
    refused = store.writer.full
    assert (store.writer.committed, store.writer.commit_number()) == (0, 1)
    store.writer.add(INSERT, ("later", 1))
    store.writer.hand_over()
    assert store.writer.commit_number() == 2
    assert store.alarms == ["the database cannot be written: database or disk is full"]
    assert [record.levelname for record in caplog.records] == ["CRITICAL"]  # once, not each time

    await _free_the_disk(store)
    await until(lambda: store.writer.committed == 2)
    assert (refused, store.writer.full) == (True, False)
    assert store.alarms[1:] == [""]
    assert await meta_names(store) == ["later"]
    size = "SELECT length(seen) FROM node_frames"
    assert await store.database.reader.query(size, (), lambda c: c.fetchall()) == [(100_000,)]


async def test_close_gives_up_on_a_full_disk_and_says_so(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    store = await open_store(tmp_path)
    await _fill_the_disk(store)
    store.writer.add(BLOB, (1, bytes(100_000)))
    await store.close()
    assert "1 rows could not be written before the stop" in caplog.text


async def test_a_value_that_sqlite_cannot_hold_is_never_committed(store: Store) -> None:
    store.writer.add(INSERT, ("a", 1))
    store.writer.add(INSERT, ("b", 1 << 63))
    store.writer.hand_over()
    await until(lambda: store.writer.attempts.failing)
    assert await meta_names(store) == []
