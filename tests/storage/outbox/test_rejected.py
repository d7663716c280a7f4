"""What the fleet refused is kept with its code, the newest of it."""

from pathlib import Path

import pytest

import gateway.storage.outbox.rejected as rejected_module
from gateway.storage.outbox.row import Outcome, row_size
from tests.support.disk.storage import Store, open_store, outbox_row

ALL = "SELECT id, code, rejected_at, stream, seq, payload FROM rejected ORDER BY id"


async def _table(store: Store) -> list[tuple[object, ...]]:
    return await store.database.reader.query(ALL, (), lambda cursor: cursor.fetchall())


async def test_a_row_moves_from_the_outbox_in_one_batch(store: Store) -> None:
    row = outbox_row(7)
    store.outbox.add(row)
    await store.settle()
    store.rejected.add(row, 0x99, 1_000)
    store.outbox.remove([row], Outcome.REJECTED, "0x99")
    await store.settle()
    assert await _table(store) == [(1, 0x99, 1_000, "main", 7, b'{"value":7}')]
    assert await store.outbox.fetch(0, 10) == []
    assert (store.rejected.rows, store.rejected.bytes) == (1, row.size)


SIZE = row_size(outbox_row(1, topic="t", payload=bytes(32)))


@pytest.mark.parametrize(("bound", "value"), [("ROWS", 3), ("BYTES", 3 * SIZE + 1)])
async def test_the_oldest_make_room_and_are_counted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, bound: str, value: int
) -> None:
    monkeypatch.setattr(rejected_module, f"MAX_REJECTED_{bound}", value)
    numbers: list[int] = []
    for seq in range(1, 6):  # a restart after each
        store = await open_store(tmp_path)
        row = outbox_row(seq, topic="t", payload=bytes(32))
        store.outbox.add(row)
        store.rejected.add(row, 0x87, seq)
        await store.settle()
        numbers.append(store.rejected.rows)
        kept = [row[4] for row in await _table(store)]
        dropped = store.counters.count("tidegate/uplink/refused_dropped")
        await store.close()
    assert numbers == [1, 2, 3, 3, 3]
    assert kept == [3, 4, 5]
    assert dropped == 1
