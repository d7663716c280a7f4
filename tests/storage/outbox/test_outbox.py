"""The outbox keeps what was committed and forgets only what was removed, whatever happens."""

import asyncio
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

import gateway.storage.outbox.reader as reader_module
from gateway.storage.engine.database import FILE_NAME, JOURNAL_SIZE_LIMIT
from gateway.storage.outbox.bounds import OutboxSettings, StreamSettings
from gateway.storage.outbox.row import Outcome, row_size
from tests.support.disk.storage import Store, bounded, open_store, outbox_row, until


async def test_rows_come_back_in_order_once_they_are_committed(store: Store) -> None:
    rows = [outbox_row(seq) for seq in range(1, 11)]
    for row in rows:
        store.outbox.add(row)
    assert [row.id for row in rows] == list(range(1, 11))
    assert store.outbox.writes.committed_id == 0
    assert await store.outbox.fetch(0, 100) == []
    await store.settle()
    assert store.outbox.writes.committed_id == 10
    assert await store.outbox.fetch(0, 100) == rows
    assert await store.outbox.fetch(3, 4) == rows[3:7]
    assert await store.outbox.fetch(3, 100, up_to=5) == rows[3:5]


async def test_a_lane_can_be_asked_for(store: Store) -> None:
    rows = [outbox_row(seq, lane="live" if seq % 3 else "backlog") for seq in range(1, 10)]
    for row in rows:
        store.outbox.add(row)
    await store.settle()
    assert [row.seq for row in await store.outbox.fetch(0, 100, lane="backlog")] == [3, 6, 9]
    assert [row.seq for row in await store.outbox.fetch(1, 2, lane="live")] == [2, 4]
    assert store.outbox.lanes == {"live", "backlog"}


async def test_large_rows_come_in_smaller_portions(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reader_module, "MAX_FETCH_BYTES", 5_000)
    for seq in range(1, 4):
        store.outbox.add(outbox_row(seq, payload=bytes(4_000)))
    store.outbox.add(outbox_row(4, payload=bytes(50_000)))
    await store.settle()
    assert [row.seq for row in await store.outbox.fetch(0, 100)] == [1, 2]
    assert [row.seq for row in await store.outbox.fetch(3, 100)] == [4]


@pytest.mark.parametrize("recent", [True, False])
async def test_lanes_and_streams_are_told_apart_in_memory_and_on_disk(
    tmp_path: Path, recent: bool
) -> None:
    store = await open_store(tmp_path)
    for seq in range(1, 13):
        lane, stream = ("live", "backlog", "recall")[seq % 3], ("main", "other")[seq % 2]
        store.outbox.add(outbox_row(seq, stream, lane=lane, user_properties=(("n", str(seq)),)))
    await store.settle()
    if not recent:
        await store.close()
        store = await open_store(tmp_path)
    found = await store.outbox.fetch(2, 3, 11, "backlog")
    other = await store.outbox.fetch(0, 100, None, None, "other")
    both = await store.outbox.fetch(0, 100, None, "live", "main")
    await store.close()
    assert [row.seq for row in found] == [4, 7, 10]
    assert [row.message.user_properties for row in found] == [
        (("n", str(seq)),) for seq in (4, 7, 10)
    ]
    assert [row.seq for row in other] == [1, 3, 5, 7, 9, 11]
    assert [row.seq for row in both] == [6, 12]


async def test_each_commit_that_changes_the_outbox_is_told(store: Store) -> None:
    reported: list[tuple[int, int]] = []
    store.outbox.on_change.append(
        lambda: reported.append(
            (store.outbox.writes.committed_id, store.outbox.writes.delivering.get(1, 0))
        )
    )
    store.outbox.add(outbox_row(1))
    row = outbox_row(2)
    store.outbox.add(row)
    await store.settle()
    store.writer.add("INSERT INTO meta VALUES (?, ?)", ("other", 1))
    await store.settle()
    store.outbox.remove([row], Outcome.DELIVERED)
    removing = store.outbox.writes.delivering.get(1, 0)
    store.outbox.end_turn()
    await until(lambda: len(reported) == 2)
    assert (reported, removing) == ([(2, 0), (2, 0)], 1)


async def test_whoever_asks_is_told_how_each_row_ended_within_its_batch(store: Store) -> None:
    ended: list[tuple[int, Outcome, str, int]] = []
    store.outbox.on_outcome.append(
        lambda rows, outcome, reason: ended.extend(
            (row.seq, outcome, reason, store.writer.batch) for row in rows
        )
    )
    rows = [outbox_row(seq) for seq in range(1, 4)]
    for row in rows:
        store.outbox.add(row)
    first = store.outbox.remove(rows[:2], Outcome.DELIVERED)
    await store.settle()
    second = store.outbox.remove(rows[2:], Outcome.REJECTED, "0x99")
    assert ended == [
        (1, Outcome.DELIVERED, "", first),
        (2, Outcome.DELIVERED, "", first),
        (3, Outcome.REJECTED, "0x99", second),
    ]


async def test_a_message_that_would_cross_the_bound_is_refused(tmp_path: Path) -> None:
    size = row_size(outbox_row(1))
    store = await open_store(tmp_path, settings=bounded(maximum_bytes=4 * size + 3))
    rows = [outbox_row(seq) for seq in range(1, 5)]
    admitted = []
    for row in rows:
        admitted.append(store.outbox.admits([row]))
        if admitted[-1]:
            store.outbox.add(row)
    store.outbox.remove(rows[:1], Outcome.DELIVERED)
    admitted.append(store.outbox.admits(rows[3:]))
    assert admitted == [True, True, True, False, True]  # a quarter is left to the log
    assert store.counters.count("tidegate/outbox/rejected") == 1
    store.counters.refresh()
    assert store.counters.count("tidegate/outbox/rows") == 2
    assert store.counters.count("tidegate/outbox/bytes") == 2 * size
    await store.close()


async def test_the_oldest_row_is_known_through_removals_in_any_order(store: Store) -> None:
    rows = [outbox_row(seq) for seq in range(1, 6)]
    for row in rows:
        store.outbox.add(row)
    oldest = [store.outbox.oldest.time]
    await store.settle()
    for index in (2, 0, 1):
        store.outbox.remove([rows[index]], Outcome.DELIVERED)
        store.writer.hand_over()
        await asyncio.sleep(0)  # removals meet a commit, and a look, that run already
    await until(lambda: store.outbox.oldest.time == rows[3].time)
    store.outbox.remove(rows[3:], Outcome.DELIVERED)
    assert (oldest, store.outbox.oldest.time) == ([rows[0].time], None)


async def test_a_commit_after_close_asks_the_database_nothing(tmp_path: Path) -> None:
    store = await open_store(tmp_path)
    rows = [outbox_row(seq) for seq in (1, 2)]
    for row in rows:
        store.outbox.add(row)
    await store.settle()
    store.outbox.remove(rows[:1], Outcome.DELIVERED)
    await store.outbox.close()
    await store.writer.close()  # commits the removal of the oldest
    await store.database.close()
    assert asyncio.all_tasks() == {asyncio.current_task()}


async def test_ids_rise_beyond_those_that_an_earlier_run_left(tmp_path: Path) -> None:
    store = await open_store(tmp_path)
    for seq in range(1, 4):
        store.outbox.add(outbox_row(seq))
    await store.close()
    again = await open_store(tmp_path)
    row = outbox_row(4)
    again.outbox.add(row)
    assert (row.id, again.outbox.rows, again.outbox.writes.committed_id) == (4, 4, 3)
    assert "live" in again.outbox.lanes
    await again.close()


@pytest.mark.uncovered
async def test_a_drained_outbox_gives_its_space_back(tmp_path: Path) -> None:
    store = await open_store(tmp_path)
    for seq in range(1, 3_001):
        store.outbox.add(outbox_row(seq, payload=bytes(3_900)))
    await store.settle()
    full = (tmp_path / FILE_NAME).stat().st_size
    position = 0
    while rows := await store.outbox.fetch(position, 100):
        position = rows[-1].id
        store.outbox.remove(rows, Outcome.DELIVERED)
        await store.settle()
    await until(lambda: (tmp_path / FILE_NAME).stat().st_size < 6 * 2**20)
    assert full > 11 * 2**20
    await store.close()


async def test_few_large_rows_give_their_space_back_too(tmp_path: Path) -> None:
    store = await open_store(tmp_path)
    for seq in range(1, 13):
        store.outbox.add(outbox_row(seq, payload=bytes(2**20)))
    await store.settle()
    while rows := await store.outbox.fetch(0, 1):
        store.outbox.remove(rows, Outcome.DELIVERED)
        await store.settle()
    await until(lambda: (tmp_path / FILE_NAME).stat().st_size < 6 * 2**20)
    await store.close()


@pytest.mark.uncovered
async def test_a_stop_while_space_is_given_back_loses_no_row(tmp_path: Path) -> None:
    store = await open_store(tmp_path)
    for seq in range(1, 3_001):
        store.outbox.add(outbox_row(seq, payload=bytes(3_900)))
    await store.settle()
    rows = await store.outbox.fetch(0, 3_000)
    while rows:
        store.outbox.remove(rows, Outcome.DELIVERED)
        rows = await store.outbox.fetch(rows[-1].id, 3_000)
    await store.settle()  # from here on space is given back
    store.outbox.add(outbox_row(9_999))
    await store.close()
    again = await open_store(tmp_path)
    assert [row.seq for row in await again.outbox.fetch(0, 10)] == [9_999]
    await again.close()


@pytest.mark.uncovered
async def test_the_log_is_cut_back_when_a_reader_has_held_it(tmp_path: Path) -> None:
    store = await open_store(tmp_path)
    log = tmp_path / f"{FILE_NAME}-wal"
    store.outbox.add(outbox_row(0))
    await store.settle()
    with closing(sqlite3.connect(tmp_path / FILE_NAME)) as reader:
        reader.execute("BEGIN")
        reader.execute("SELECT count(*) FROM outbox").fetchone()
        for seq in range(1, 6_001):
            store.outbox.add(outbox_row(seq, payload=bytes(3_900)))
        await store.settle()
        held = log.stat().st_size
    for seq in range(3):  # one copies the log into the file, the next begins it anew
        store.outbox.add(outbox_row(seq))
        await store.settle()
    assert held > JOURNAL_SIZE_LIMIT
    assert log.stat().st_size <= JOURNAL_SIZE_LIMIT
    await store.close()


async def test_rows_of_a_time_with_one_stream_are_found_beside_others(tmp_path: Path) -> None:
    several = OutboxSettings(streams=(StreamSettings("main"), StreamSettings("other")))
    settings = [OutboxSettings(), several, OutboxSettings(), several, several]
    expected: dict[str, list[int]] = {"main": [], "other": []}
    for seq, each in enumerate(settings, 1):
        store = await open_store(tmp_path, settings=each)
        names = ["main", "other"] if each is several else ["main"]
        for name in names:
            store.outbox.add(outbox_row(seq, name))
            expected[name].append(seq)
        await store.settle()
        await store.close()
        store = await open_store(tmp_path, settings=each)
        for name, numbers in expected.items():
            rows = await store.outbox.fetch(0, 100, stream=name)
            assert [row.seq for row in rows] == numbers
            later = await store.outbox.fetch(rows[0].id if rows else 0, 100, stream=name)
            assert [row.seq for row in later] == numbers[1:]
        await store.close()
    with closing(sqlite3.connect(tmp_path / FILE_NAME)) as connection:
        indexed = connection.execute("SELECT indexed FROM outbox ORDER BY id").fetchall()
    assert indexed == [(0,), *[(1,)] * 7]
