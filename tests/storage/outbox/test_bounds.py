"""Bounds, policies and modes of the outbox; the sums of a large one are on disk."""

import sqlite3
from pathlib import Path

import pytest

import gateway.storage.outbox.bounds as bounds_module
import gateway.storage.outbox.oldest as oldest_module
from gateway.settings.outbox import Mode
from gateway.settings.when_full import WhenFull
from gateway.storage.engine.database import FILE_NAME
from gateway.storage.outbox.bounds import OutboxSettings, Retention, StreamSettings
from gateway.storage.outbox.row import Outcome
from tests.support.disk.storage import Store, bounded, open_store, outbox_row, until

# --- what the model leaves out --------------------------------------------------------------


@pytest.fixture
def small_heads(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(oldest_module, "HEAD_ROWS", 4)
    monkeypatch.setattr(bounds_module, "HEAD_ROWS", 4)


async def _numbers(store: Store) -> list[int]:
    return [row.seq for row in await store.outbox.fetch(0, 1_000)]


@pytest.mark.usefixtures("small_heads")
@pytest.mark.parametrize("streams", [("main",), ("main", "other")])
async def test_more_than_is_known_leaves_as_the_disk_is_read(
    tmp_path: Path, streams: tuple[str, ...]
) -> None:
    whole = Retention(maximum_messages=10, when_full=WhenFull.DROP_OLDEST)
    outbox = OutboxSettings(whole, tuple(map(StreamSettings, streams)))
    store = await open_store(tmp_path, settings=outbox)
    ended: list[int] = []
    store.outbox.on_outcome.append(lambda rows, *_: ended.extend(row.seq for row in rows))
    for seq in range(1, 51):
        store.outbox.add(outbox_row(seq, streams[seq % len(streams)]))
    crossed = store.outbox.rows
    await store.settle()
    await until(lambda: store.outbox.rows == 10)
    await store.settle()
    assert crossed > 10
    assert (ended, await _numbers(store)) == (list(range(1, 41)), list(range(41, 51)))
    await store.close()


@pytest.mark.usefixtures("small_heads")
async def test_smaller_bounds_hold_after_a_restart(tmp_path: Path) -> None:
    store = await open_store(tmp_path)
    for seq in range(1, 51):
        store.outbox.add(outbox_row(seq))
    await store.close()
    store = await open_store(tmp_path, settings=bounded("drop-oldest", maximum_messages=7))
    assert store.outbox.rows == 50  # nobody could be told yet
    ended: list[tuple[int, str]] = []
    store.outbox.on_outcome.append(
        lambda rows, _, reason: ended.extend((row.seq, reason) for row in rows)
    )
    await store.outbox.sweep(0, 0.0)
    await until(lambda: store.outbox.rows == 7)
    await store.settle()
    assert ended == [(seq, "drop-oldest") for seq in range(1, 44)]
    assert await _numbers(store) == list(range(44, 51))
    await store.close()


async def test_a_row_that_left_is_neither_fetched_nor_sent(tmp_path: Path) -> None:
    store = await open_store(tmp_path, settings=bounded("drop-oldest", maximum_messages=3))
    for seq in (1, 2, 3):
        store.outbox.add(outbox_row(seq))
    await store.settle()
    rows = await store.outbox.fetch(0, 10)
    assert store.outbox.claim(rows[1], 0)
    store.outbox.add(outbox_row(4))  # in the place of 1
    store.outbox.add(outbox_row(5))  # in the place of 3, since 2 may be at the fleet
    assert await _numbers(store) == [2]
    assert [store.outbox.claim(row, 0) for row in rows] == [False, True, False]
    store.outbox.remove(rows, Outcome.DELIVERED)
    await store.settle()
    assert await _numbers(store) == [4, 5]
    assert store.outbox.rows == 2
    await store.close()


async def test_forgotten_topics_keep_their_older_row(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(bounds_module, "MAX_LATEST_TOPICS", 2)
    latest = OutboxSettings(streams=(StreamSettings("main", mode=Mode.LATEST),))
    store = await open_store(tmp_path, settings=latest)
    for seq, topic in enumerate("abacab", 1):
        store.outbox.add(outbox_row(seq, topic=topic))
    await store.settle()
    # b (2) was forgotten for c, and stays beside the newer b (6); so was c, for b
    assert await _numbers(store) == [2, 4, 5, 6]
    assert store.counters.count("tidegate/outbox/evicted/latest") == 2
    assert store.counters.count("tidegate/outbox/latest_overflow") == 2
    await store.close()


@pytest.mark.parametrize("bound", ["messages", "bytes"])
async def test_a_full_stream_of_latest_messages_admits_new_ones_of_its_topics_alone(
    tmp_path: Path, bound: str
) -> None:
    first, second, third = (outbox_row(seq, topic=topic) for seq, topic in enumerate("aba", 1))
    folders = [tmp_path / name for name in ("measured", "bounded")]
    for folder in folders:
        folder.mkdir()
    store = await open_store(folders[0])
    store.outbox.add(first)
    store.outbox.add(second)
    bounds = {"maximum_messages": 2, "maximum_bytes": store.outbox.bounds.bytes}
    await store.close()
    own = Retention(**{f"maximum_{bound}": bounds[f"maximum_{bound}"]}, when_full=WhenFull.REJECT)
    streams = (StreamSettings("main", retention=own, mode=Mode.LATEST),)
    store = await open_store(folders[1], settings=OutboxSettings(streams=streams))
    for row in (first, second):
        assert store.outbox.admits([row])
        store.outbox.add(row)
    assert not store.outbox.admits([outbox_row(4, topic="c")])
    assert store.outbox.admits([third])
    store.outbox.add(third)
    assert not store.outbox.admits([outbox_row(4, topic="c")])
    await store.settle()
    assert await _numbers(store) == [2, 3]
    await store.close()


async def test_the_sums_of_a_large_outbox_are_not_counted_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(bounds_module, "SCAN_ROWS", 10)
    store = await open_store(tmp_path)
    for turn in range(5):
        for seq in range(1, 8):
            store.outbox.add(outbox_row(seq, ("main", "other")[turn % 2]))
        await store.settle()
    rows = await store.outbox.fetch(0, 100)
    store.outbox.remove(rows[:3], Outcome.DELIVERED)
    await store.settle()
    counted, size = store.outbox.rows, store.outbox.bounds.bytes
    await store.close()
    with sqlite3.connect(tmp_path / FILE_NAME) as connection:
        sums = connection.execute("SELECT stream, rows, up_to FROM outbox_totals").fetchall()
        connection.execute("UPDATE outbox_totals SET rows = 1000 WHERE stream = 'other'")
    connection.close()
    assert sums == [("main", 18, 35), ("other", 14, 35)]
    again = await open_store(tmp_path)
    assert (counted, again.outbox.rows, again.outbox.bounds.bytes) == (32, 1018, size)
    await again.close()


async def test_an_outbox_that_has_become_small_is_counted_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(bounds_module, "SCAN_ROWS", 10)
    store = await open_store(tmp_path)
    for seq in range(1, 21):
        store.outbox.add(outbox_row(seq))
    await store.settle()
    store.outbox.remove(await store.outbox.fetch(0, 15), Outcome.DELIVERED)
    await store.settle()
    sums = await store.database.reader.query("SELECT * FROM outbox_totals", (), list)
    await store.close()
    again = await open_store(tmp_path)
    assert (sums, again.outbox.rows) == ([], 5)
    await again.close()
