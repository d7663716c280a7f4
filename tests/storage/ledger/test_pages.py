"""Passes through the ledger, and how it is kept within its bound."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

import gateway.storage.ledger.pages as pages_module
from gateway.storage.ledger.range import LedgerRange
from gateway.storage.outbox.row import Outcome
from tests.support.disk.ledger import LedgerStore, open_ledger_store
from tests.support.disk.storage import crash_image


@pytest.fixture
async def kept(tmp_path: Path) -> AsyncIterator[LedgerStore]:
    opened = await open_ledger_store(tmp_path / "data")
    yield opened
    await opened.close()


async def _pass(kept: LedgerStore, limit: int = 2) -> list[LedgerRange]:
    """Return what one pass gives, with all on disk."""
    given: list[LedgerRange] = []
    while True:
        page = await kept.pages.next_page(limit)
        if page is None:
            await kept.settle()
            continue
        given += page
        if kept.pages.between_passes:
            return given


async def _alternate(kept: LedgerStore, times: int) -> None:
    """Have every second message evicted, and all others filtered."""
    for _ in range(times):
        kept.filter()
        kept.take()
    await kept.settle()
    rows = await kept.store.outbox.fetch(0, 10_000)
    kept.store.outbox.remove(rows, Outcome.EVICTED, "drop-oldest")
    await kept.settle()


async def test_a_pass_gives_each_range_once_and_in_order(kept: LedgerStore) -> None:
    await _alternate(kept, 3)
    kept.filter(stream="a")
    await kept.settle()
    first = await _pass(kept)
    assert [(each.stream, each.first) for each in first] == [
        ("a", 1),
        *(("main", number) for number in range(1, 7)),
    ]
    kept.filter()
    await kept.settle()
    assert [each.first for each in await _pass(kept)] == [7]  # the others are in hand
    kept.pages.reported(first)
    assert await _pass(kept) == []  # reported, though not deleted yet
    await kept.settle()
    assert await kept.on_disk() == [(7, 7, "filtered", "0@00000000")]


async def test_beyond_its_bound_the_ledger_is_compacted(
    kept: LedgerStore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pages_module, "MAX_LEDGER_RANGES", 5)
    monkeypatch.setattr(pages_module, "COMPACTION_PAGE", 8)
    await _alternate(kept, 20)
    assert kept.ledger.rows == 40
    for _ in range(20):
        await kept.pages.shorten()
        await kept.settle()
    said = await kept.on_disk()
    assert len(said) == kept.ledger.rows == 5
    assert said[0] == (1, 8, "evicted", "evicted*4 filtered*4")
    assert kept.store.counters.count("tidegate/ledger/compacted") == 35
    again = await open_ledger_store(
        crash_image(tmp_path / "data", tmp_path / "crashed"), "ffffffffff"
    )
    assert await again.on_disk() == said
    await again.close()
