"""Rows end when their message expiry or a maximum age has passed."""

from pathlib import Path

import pytest

import gateway.storage.outbox.streams.expiry as expiry_module
from gateway.storage.outbox.outcome import Outcome
from gateway.storage.outbox.streams.retention import (
    Mode,
    OutboxSettings,
    Retention,
    StreamSettings,
)
from tests.support.disk.storage import open_store, outbox_row


async def test_what_has_expired_is_not_sent_and_is_swept(tmp_path: Path) -> None:
    expire = StreamSettings("short", mode=Mode.EXPIRE, expire_after=10)
    aged = StreamSettings("aged", retention=Retention(maximum_age=100))
    store = await open_store(tmp_path, settings=OutboxSettings(streams=(expire, aged)))
    ended: list[tuple[str, Outcome, str]] = []
    store.outbox.on_outcome.append(
        lambda rows, outcome, reason: ended.extend(
            (f"{row.stream}.{row.seq}", outcome, reason) for row in rows
        )
    )
    rows = [
        outbox_row(1, "main", time=0, message_expiry=60),
        outbox_row(2, "main", time=0),
        outbox_row(1, "short", time=0),
        outbox_row(2, "short", time=0, message_expiry=5),
        outbox_row(3, "short", time=0, message_expiry=60),
        outbox_row(1, "aged", time=0),
        outbox_row(2, "aged", time=50_000),
    ]
    for row in rows:
        store.outbox.add(row)
    await store.settle()
    assert [row.message_expiry for row in rows] == [60, None, 10, 5, 10, None, None]
    fetched = {(row.stream, row.seq): row for row in await store.outbox.fetch(0, 10)}
    assert store.outbox.take(fetched["short", 2], 4_999)
    store.outbox.put_back(fetched["short", 2])
    assert not store.outbox.take(fetched["short", 2], 5_000)
    assert store.outbox.take(fetched["short", 3], 9_000)  # and on its way since then
    await store.outbox.sweep(99_999, 99.999)
    await store.outbox.sweep(100_000, 100.0)
    await store.settle()
    assert ended == [
        ("short.2", Outcome.EXPIRED, ""),
        ("short.1", Outcome.EXPIRED, ""),
        ("main.1", Outcome.EXPIRED, ""),
        ("aged.1", Outcome.EXPIRED, "maximum_age"),
    ]
    assert store.counters.count("tidegate/outbox/expired") == 4
    assert [(row.stream, row.seq) for row in await store.outbox.fetch(0, 10)] == [
        ("main", 2),
        ("short", 3),
        ("aged", 2),
    ]
    await store.close()


async def test_a_sweep_ends_so_many_rows_at_a_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(expiry_module, "SWEEP_ROWS", 3)
    store = await open_store(tmp_path)
    for seq in range(1, 8):
        store.outbox.add(outbox_row(seq, time=0, message_expiry=1))
    more = []
    for _ in range(3):
        await store.settle()
        more.append(await store.outbox.sweep(1_000, 1.0))
    assert (more, store.outbox.rows) == ([True, True, False], 0)
    await store.close()
