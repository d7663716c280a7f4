"""The sums of a large outbox are on disk; those of a small one are counted."""

import sqlite3
from pathlib import Path

import pytest

import gateway.storage.outbox.streams.totals as totals_module
from gateway.storage.engine.database import FILE_NAME
from gateway.storage.outbox.outcome import Outcome
from tests.support.disk.storage import open_store, outbox_row


async def test_the_sums_of_a_large_outbox_are_not_counted_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(totals_module, "SCAN_ROWS", 10)
    store = await open_store(tmp_path)
    for turn in range(5):
        for seq in range(1, 8):
            store.outbox.add(outbox_row(seq, ("main", "other")[turn % 2]))
        await store.settle()
    rows = await store.outbox.fetch(0, 100)
    store.outbox.remove(rows[:3], Outcome.DELIVERED)
    await store.settle()
    counted, size = store.outbox.rows, store.outbox.bytes
    await store.close()
    with sqlite3.connect(tmp_path / FILE_NAME) as connection:
        sums = connection.execute("SELECT stream, rows, up_to FROM outbox_totals").fetchall()
        connection.execute("UPDATE outbox_totals SET rows = 1000 WHERE stream = 'other'")
    connection.close()
    assert sums == [("main", 18, 35), ("other", 14, 35)]
    again = await open_store(tmp_path)
    assert (counted, again.outbox.rows, again.outbox.bytes) == (32, 1018, size)
    await again.close()


async def test_an_outbox_that_has_become_small_is_counted_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(totals_module, "SCAN_ROWS", 10)
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
