"""Spans and records outlive the gateway, spans no boot."""

from pathlib import Path

import pytest

import gateway.storage.state.clock_store as store_module
from gateway.clock.spans import Span
from gateway.storage.state.clock_store import ClockStore
from tests.support.disk.storage import Store, open_store


def _clock_store(store: Store) -> ClockStore:
    return ClockStore(store.database, store.writer, store.counters)


async def test_spans_of_this_boot_come_back(tmp_path: Path) -> None:
    store = await open_store(tmp_path)
    kept = _clock_store(store)
    assert await kept.load("boot") == []
    spans = [
        Span("boot", "00a1b2c3d4", -5, 10, 20, {"main": 1}, {"main": 3}),
        Span("boot", "00a1b2c3d4", 7, 30),
    ]
    kept.save_spans([Span("boot", "ffffffffff", 0, 0)])
    kept.save_spans(spans)
    await store.close()
    store = await open_store(tmp_path)
    assert await _clock_store(store).load("boot") == spans
    assert await _clock_store(store).load("another") == []
    await store.close()


async def test_records_stay_until_they_are_removed(tmp_path: Path) -> None:
    store = await open_store(tmp_path)
    kept = _clock_store(store)
    assert [kept.add("{1}"), kept.add("{2}")] == [1, 2]
    assert kept.remove(1)
    assert not kept.remove(1)
    await store.close()
    store = await open_store(tmp_path)
    kept = _clock_store(store)
    await kept.load("boot")
    assert kept.records == {2: "{2}"}
    assert kept.add("{3}") == 3
    await store.close()


async def test_the_oldest_records_make_room(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(store_module, "MAX_CLOCK_RECORDS", 2)
    store = await open_store(tmp_path)
    kept = _clock_store(store)
    for number in range(4):
        kept.add(str(number))
    assert list(kept.records.values()) == ["2", "3"]
    assert store.counters.count("tidegate/clock/dropped") == 2
    await store.close()
