"""Batches: gathered in a turn, committed in order."""

import asyncio
import sqlite3
from pathlib import Path

import pytest

import gateway.storage.engine.free_space as vacuum_module
import gateway.storage.engine.writer as writer_module
from gateway.storage.engine.free_space import RESERVED_PAGES
from tests.support.disk.storage import Store, meta_names, open_store, until

INSERT = "INSERT INTO meta VALUES (?, ?)"
BLOB = "INSERT INTO node_frames VALUES (?, 0, 0, 0, ?)"


async def test_a_batch_is_on_disk_when_its_number_is_committed(store: Store) -> None:
    numbers: list[int] = []
    store.writer.on_committed.append(numbers.append)
    assert store.writer.add(INSERT, ("a", 1)) == 1
    assert (store.writer.commit_number(), store.writer.committed) == (1, 0)
    assert store.writer.pending_rows == 1
    store.writer.hand_over()
    await until(lambda: store.writer.committed == 1)
    assert await meta_names(store) == ["a"]
    assert numbers == [1]
    assert (
        store.writer.commit_number(),
        store.writer.pending_rows,
        store.writer.pending_bytes,
    ) == (0, 0, 0)


async def test_turns_during_a_commit_share_the_next_one(store: Store) -> None:
    store.writer.add(INSERT, ("a", 1))
    store.writer.hand_over()
    await asyncio.sleep(0)  # the commit of "a" begins
    assert store.writer.batch == 2
    assert store.writer.commit_number() == 1
    assert [store.writer.add(INSERT, (name, 1)) for name in "bc"] == [2, 2]
    store.writer.hand_over()
    store.writer.add(INSERT, ("d", 1))
    store.writer.hand_over()
    assert store.writer.commit_number() == 2
    await until(lambda: store.writer.committed == 2)
    assert store.counters.count("tidegate/storage/commits") == 2
    assert store.counters.count("tidegate/storage/rows") == 4
    assert await meta_names(store) == ["a", "b", "c", "d"]


async def test_statements_keep_their_order_within_a_batch(store: Store) -> None:
    store.writer.add(INSERT, ("a", 1))
    store.writer.add("DELETE FROM meta WHERE name = ?", ("a",))
    store.writer.add(INSERT, ("a", 2))
    store.writer.add(INSERT, ("b", 1))
    await store.settle()
    assert await meta_names(store) == ["a", "b"]


async def test_rows_that_come_together_are_rows_like_any_other(store: Store) -> None:
    writer = store.writer
    writer.add_rows(INSERT, [], 0)
    assert writer.commit_number() == 0
    writer.add("DELETE FROM meta", ())
    writer.add_rows(INSERT, [("a", 1), ("bb", 2)], 3)
    together = writer.pending_rows, writer.pending_bytes
    writer.add(INSERT, ("c", 3))
    assert writer.commit_number() == 1
    await store.settle()
    assert await meta_names(store) == ["a", "bb", "c"]
    writer.add("DELETE FROM meta", ())
    for row in (("a", 1), ("bb", 2)):
        writer.add(INSERT, row)
    assert (writer.pending_rows, writer.pending_bytes) == together


async def test_an_empty_turn_commits_nothing(store: Store) -> None:
    store.writer.hand_over()
    await asyncio.sleep(0)
    assert (store.writer.batch, store.writer.committed) == (1, 0)


async def test_in_memory_mode_rows_are_written_and_nothing_waits(tmp_path: Path) -> None:
    store = await open_store(tmp_path, durable=False)
    store.writer.add(INSERT, ("a", 1))
    store.writer.hand_over()
    await asyncio.sleep(0)
    assert (store.writer.commit_number(), store.writer.batch) == (0, 1)  # put off
    await store.settle()
    assert await meta_names(store) == ["a"]
    await store.close()


async def test_close_commits_what_is_left(tmp_path: Path) -> None:
    store = await open_store(tmp_path)
    store.writer.add(INSERT, ("a", 1))
    store.writer.hand_over()
    await asyncio.sleep(0)
    store.writer.add(INSERT, ("b", 1))
    await store.close()
    again = await open_store(tmp_path)
    assert await meta_names(again) == ["a", "b"]
    await again.close()


@pytest.mark.parametrize("bound", ["MAX_PENDING_ROWS", "MAX_PENDING_BYTES"])
async def test_a_bound_on_what_is_pending_makes_the_writer_full(
    store: Store, monkeypatch: pytest.MonkeyPatch, bound: str
) -> None:
    monkeypatch.setattr(writer_module, bound, {"MAX_PENDING_ROWS": 3}.get(bound, 300))
    full = []
    for name in "abc":
        full.append(store.writer.full)
        store.writer.add(INSERT, (name * 60, 1))
    full.append(store.writer.full)
    await store.settle()
    full.append(store.writer.full)
    assert full == [False, False, False, True, False]


async def _fill_and_empty(store: Store) -> int:
    """Return the bytes of the file between 12 MB of rows and their deletion."""
    for node in range(3_000):
        store.writer.add(BLOB, (node, bytes(4_000)))
    await store.settle()
    checkpoint = "PRAGMA wal_checkpoint(TRUNCATE)"
    await store.database.writer.query(checkpoint, (), lambda cursor: cursor.fetchall())
    large = store.database.path.stat().st_size
    for node in range(3_000):
        store.writer.add("DELETE FROM node_frames WHERE node = ?", (node,))
    await store.settle()
    return large


async def _until_given_back(store: Store) -> None:
    async def free_pages() -> int:
        return await store.database.reader.query(
            "PRAGMA freelist_count", (), lambda cursor: int(cursor.fetchone()[0])
        )

    async with asyncio.timeout(60):
        while await free_pages() > RESERVED_PAGES:  # noqa: ASYNC110 - only SQLite knows
            await asyncio.sleep(0.005)


async def test_space_is_given_back_after_large_deletes(tmp_path: Path) -> None:
    store = await open_store(tmp_path)
    large = await _fill_and_empty(store)
    await _until_given_back(store)
    await store.close()
    assert large > 12_000_000
    assert store.database.path.stat().st_size < 5_000_000
    connection = sqlite3.connect(store.database.path)
    assert connection.execute("PRAGMA integrity_check").fetchone() == ("ok",)
    connection.close()


@pytest.mark.uncovered
async def test_a_stop_does_not_wait_for_space_to_be_given_back(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(vacuum_module, "STEP_PAGES", 1)
    store = await open_store(tmp_path)
    await _fill_and_empty(store)
    await store.close()
    left = store.database.path.stat().st_size
    monkeypatch.undo()
    again = await open_store(tmp_path)
    again.writer.add(INSERT, ("a", 1))  # the next run goes on with it
    await again.settle()
    await _until_given_back(again)
    await again.close()
    assert left > 8_000_000


async def test_four_mebibytes_of_free_pages_stay_for_the_next_rows(tmp_path: Path) -> None:
    store = await open_store(tmp_path)
    await _fill_and_empty(store)
    await _until_given_back(store)
    await store.close()
    connection = sqlite3.connect(store.database.path)
    (size,) = connection.execute("PRAGMA page_size").fetchone()
    (free,) = connection.execute("PRAGMA freelist_count").fetchone()
    connection.close()
    assert free * size == 4 * 1024 * 1024
