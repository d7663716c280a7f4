"""What somebody holds is one object; the newest rows are read from memory."""

import gc

import pytest

import gateway.storage.outbox.reader as reader_module
from gateway.storage.outbox.reader import OutboxReader, RecentRows
from gateway.storage.outbox.row import to_columns
from tests.support.disk.storage import Store, outbox_row


@pytest.fixture
async def reader(store: Store) -> OutboxReader:
    return OutboxReader(store.database, store.writer, store.outbox.uplinks)


async def test_what_is_held_is_the_same_object_however_often_it_is_read(
    reader: OutboxReader,
) -> None:
    first = reader.hold(outbox_row(1, id=7))
    first.claimed = 1
    again, other = (reader.hold(outbox_row(each - 6, id=each)) for each in (7, 8))
    assert again is first
    assert (reader.is_claimed(7), reader.is_claimed(8)) == (True, False)
    reader.mark_deleted(8)
    assert (first.deleted, other.deleted) == (False, True)


async def test_an_unwritten_row_is_claimed_and_deleted_like_one_that_is_held(
    reader: OutboxReader,
) -> None:
    row = reader.unwritten[7] = outbox_row(1, id=7)
    row.claimed = 1
    assert reader.is_claimed(7)
    assert [each is row for each in reader.rows] == [True]
    reader.mark_deleted(7)
    assert row.deleted


async def test_what_nobody_holds_is_forgotten(reader: OutboxReader) -> None:
    row = reader.hold(outbox_row(1, id=7))
    row.claimed = 1
    del row
    gc.collect()
    assert not reader.is_claimed(7)
    reader.mark_deleted(7)
    assert not reader.hold(outbox_row(1, id=7)).deleted


def _recent(count: int, size: int = 100) -> RecentRows:
    recent = RecentRows()
    recent.start(10)
    for identifier in range(11, 11 + count):
        recent.add(identifier, size, to_columns(outbox_row(identifier, id=identifier, size=size)))
    return recent


def _ids(recent: RecentRows, after_id: int, up_to: int) -> list[int] | None:
    rows = recent.fetch(after_id, up_to, 10_000, lane=None, stream=None)
    return None if rows is None else [row.id for row in rows]


def test_what_came_since_the_start_is_given_as_far_as_it_is_asked_for() -> None:
    recent = _recent(5)
    assert _ids(recent, 10, 15) == [11, 12, 13, 14, 15]
    assert _ids(recent, 12, 14) == [13, 14]
    assert _ids(recent, 15, 15) == []
    assert _ids(recent, 9, 15) is None  # 10 is on disk alone


def test_what_has_left_is_not_given() -> None:
    recent = _recent(3)
    recent.remove(12)
    recent.remove(12)
    assert _ids(recent, 10, 13) == [11, 13]


@pytest.mark.parametrize("bound", ["MAX_RECENT_ROWS", "MAX_RECENT_BYTES"])
def test_the_oldest_go_and_the_disk_has_to_be_asked_for_them(
    monkeypatch: pytest.MonkeyPatch, bound: str
) -> None:
    monkeypatch.setattr(reader_module, bound, 4 if bound == "MAX_RECENT_ROWS" else 400)
    recent = _recent(6)
    assert _ids(recent, 11, 16) is None
    assert _ids(recent, 12, 16) == [13, 14, 15, 16]
    recent.remove(13)
    recent.add(17, 100, to_columns(outbox_row(17, id=17, size=100)))
    assert _ids(recent, 13, 17) == [14, 15, 16, 17]


def test_a_row_larger_than_the_bound_stays_until_the_next(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reader_module, "MAX_RECENT_BYTES", 50)
    recent = _recent(1)
    assert _ids(recent, 10, 11) == [11]


def test_a_long_way_is_left_to_the_disk() -> None:
    recent = _recent(1_500)
    for identifier in range(11, 1_500):
        recent.remove(identifier)
    assert _ids(recent, 1_490, 1_510) == list(range(1_500, 1_511))
    assert _ids(recent, 480, 1_510) is None
