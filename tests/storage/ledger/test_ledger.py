"""The ledger on disk: ranges that cost no commit of their own, and none without its rows."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

import gateway.storage.ledger.ledger as ledger_module
from gateway.storage.ledger.starts import MAX_STARTS
from gateway.storage.outbox.row import Outcome
from tests.support.disk.ledger import LedgerStore, open_ledger_store
from tests.support.disk.storage import crash_image, until


@pytest.fixture
async def kept(tmp_path: Path) -> AsyncIterator[LedgerStore]:
    opened = await open_ledger_store(tmp_path / "data")
    yield opened
    await opened.close()


async def test_filtered_numbers_wait_for_a_batch_and_go_with_it(kept: LedgerStore) -> None:
    kept.filter(3)
    kept.store.writer.hand_over()
    assert kept.store.writer.commit_number() == 0  # nobody's answer waits for them
    assert kept.store.counters.count("tidegate/storage/commits") == 1  # of the start
    kept.take()
    await kept.store.settle()
    assert await kept.on_disk() == [(1, 3, "filtered", "0@00000000")]
    assert kept.store.counters.count("tidegate/storage/commits") == 2


async def test_filtered_numbers_do_not_wait_for_ever(
    kept: LedgerStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ledger_module, "LEDGER_SECONDS", 0.02)
    kept.filter(2)
    await until(lambda: kept.store.writer.committed == 2)
    assert await kept.on_disk() == [(1, 2, "filtered", "0@00000000")]


async def test_a_range_grows_in_its_row(kept: LedgerStore) -> None:
    for _ in range(3):
        kept.filter(2)
        await kept.settle()
    assert await kept.on_disk() == [(1, 6, "filtered", "0@00000000")]
    assert kept.ledger.rows == 1
    kept.ledger.close_ranges()
    kept.filter(1)
    await kept.settle()
    assert await kept.on_disk() == [
        (1, 6, "filtered", "0@00000000"),
        (7, 7, "filtered", "0@00000000"),
    ]


async def test_the_end_of_a_row_is_in_the_batch_of_its_removal(
    kept: LedgerStore, tmp_path: Path
) -> None:
    kept.take(4)
    await kept.settle()
    rows = await kept.store.outbox.fetch(0, 10)
    before = crash_image(tmp_path / "data", tmp_path / "before")
    kept.store.outbox.remove(rows[:2], Outcome.DELIVERED)
    kept.store.outbox.remove(rows[2:3], Outcome.EVICTED, "drop-oldest")
    await kept.store.settle()
    after = crash_image(tmp_path / "data", tmp_path / "after")
    for folder, ranges, waiting in (
        (before, [], [1, 2, 3, 4]),
        (after, [(1, 2, "delivered", ""), (3, 3, "evicted", "drop-oldest")], [4]),
    ):
        again = await open_ledger_store(folder, "ffffffffff")
        assert await again.on_disk() == ranges
        assert [row.seq for row in await again.store.outbox.fetch(0, 10)] == waiting
        assert again.starts.present.previous == {"epoch": kept.epoch, "last": {"main": 4}}
        assert again.starts.of(kept.epoch).start == 1
        await again.close()


async def test_numbers_after_the_last_commit_are_not_known(
    kept: LedgerStore, tmp_path: Path
) -> None:
    kept.filter(3)
    kept.take(1, "slow")
    await kept.settle()
    kept.filter(5)
    kept.take(2, "slow")
    crashed = crash_image(tmp_path / "data", tmp_path / "crashed")
    again = await open_ledger_store(crashed, "ffffffffff")
    assert again.starts.present.previous == {"epoch": kept.epoch, "last": {"main": 3, "slow": 1}}
    assert await again.on_disk() == [(1, 3, "filtered", "0@00000000")]
    await again.close()


async def test_a_stop_writes_what_was_noted(tmp_path: Path) -> None:
    kept = await open_ledger_store(tmp_path / "data")
    kept.filter(2)
    await kept.close()
    again = await open_ledger_store(tmp_path / "data", "ffffffffff")
    assert await again.on_disk() == [(1, 2, "filtered", "0@00000000")]
    assert again.starts.present.previous == {"epoch": kept.epoch, "last": {"main": 2}}
    assert again.ledger.rows == 1
    await again.close()


async def test_rules_that_take_turns_share_a_range(kept: LedgerStore) -> None:
    for _ in range(100):
        kept.filter(1, rule="0@00000000")
        kept.filter(2, rule="1@11111111")
    await kept.settle()
    assert await kept.on_disk() == [(1, 300, "filtered", "1@11111111*200 0@00000000*100")]


async def test_ranges_in_memory_are_bounded(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Written when there are too many; compacted while the disk takes none."""
    monkeypatch.setattr(ledger_module, "MAX_PENDING_RANGES", 10)
    kept = await open_ledger_store(tmp_path)
    for place in range(10):
        kept.filter(40, rule=f"{place % 2}@00000000")
    await until(lambda: kept.store.writer.committed == 2)
    assert len(await kept.on_disk()) == 10
    await kept.settle()  # the numbers behind the first of the tenth range
    kept.store.writer.attempts.failing = True
    for place in range(10):
        kept.filter(40, rule=f"{place % 2}@00000000")
    assert kept.store.counters.count("tidegate/ledger/compacted") == 9
    kept.store.writer.attempts.failing = False
    await kept.settle()
    assert (await kept.on_disk())[10:] == [
        (401, 761, "filtered", "0@00000000*200 1@00000000*161"),
        (762, 800, "filtered", "1@00000000"),
    ]
    await kept.close()


async def test_reported_ranges_are_deleted_with_a_later_batch(kept: LedgerStore) -> None:
    kept.filter(3)
    await kept.settle()
    page: list[object] | None = None
    while not page:
        page = await kept.pages.next_page(10)  # type: ignore[assignment]  # narrower
    kept.pages.reported(page)  # type: ignore[arg-type]  # as above
    kept.store.writer.hand_over()
    assert kept.store.counters.count("tidegate/storage/commits") == 2
    assert (kept.ledger.rows, kept.pages.rows) == (1, 0)
    await kept.settle()
    assert await kept.on_disk() == []
    assert (kept.ledger.rows, kept.ledger.reported_ids) == (0, {})


async def test_starts_with_nothing_left_to_tell_are_forgotten(tmp_path: Path) -> None:
    for number in range(1, 5):
        kept = await open_ledger_store(tmp_path / "data", f"{number:010x}")
        if number == 2:
            kept.take(1)
        kept.starts.save_announced(kept.starts.present)
        await kept.close()
    last = await open_ledger_store(tmp_path / "data", "ffffffffff")
    assert last.starts.of("0000000001").start is None
    assert last.starts.of("0000000002").start == 2  # a row of it waits
    assert last.starts.of("0000000003").start is None
    assert [start.start for start in last.starts.unannounced] == [5]
    await last.close()


async def test_starts_that_nobody_hears_of_are_bounded(tmp_path: Path) -> None:
    kept = await open_ledger_store(tmp_path / "data", "0000000001")
    await kept.close()
    database = (await open_ledger_store(tmp_path / "data", "0000000002")).store
    await database.database.writer.write(
        [("UPDATE meta SET value = ? WHERE name = 'starts'", [(MAX_STARTS + 1,)])]
    )
    await database.close()
    late = await open_ledger_store(tmp_path / "data", "0000000003")
    assert [start.start for start in late.starts.unannounced] == [MAX_STARTS + 2]
    assert late.store.counters.count("tidegate/ledger/starts_forgotten") == 2
    assert late.starts.present.previous == {"epoch": "0000000002", "last": {}}
    await late.close()
