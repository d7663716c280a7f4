"""A database in memory takes over what is on the disk, and is bounded."""

import sqlite3
from pathlib import Path

import pytest

from gateway.storage.engine import memory_database as module
from gateway.storage.engine.database import FILE_NAME
from gateway.storage.engine.memory_database import open_in_memory
from tests.support.disk.storage import crash_image, open_store, outbox_row

ROWS = 300


async def image(folder: Path) -> Path:
    (folder / "live").mkdir()
    store = await open_store(folder / "live")
    for number in range(1, ROWS + 1):
        store.outbox.add(outbox_row(number, payload=bytes(1_000)))
    await store.settle()
    path = crash_image(folder / "live", folder / "image") / FILE_NAME
    await store.close()
    return path


async def test_it_has_what_the_disk_has(tmp_path: Path) -> None:
    path = await image(tmp_path)
    before = path.read_bytes()
    connection, salvage = await open_in_memory(path)
    assert salvage is not None
    assert (salvage.salvaged["outbox"], salvage.all_lost) == (ROWS, 0)
    count = "SELECT count(*) FROM outbox"
    assert await connection.query(count, (), lambda cursor: cursor.fetchone()) == (ROWS,)
    await connection.close()
    assert path.read_bytes() == before


async def test_without_a_disk_it_is_empty(tmp_path: Path) -> None:
    connection, salvage = await open_in_memory(tmp_path / "missing.db")
    assert salvage is None
    await connection.close()


async def test_what_comes_in_has_room_whatever_was_taken_over(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = await image(tmp_path)
    monkeypatch.setattr(module, "MAXIMUM_COPIED", 200 * 1024)
    monkeypatch.setattr(module, "MEMORY_BYTES", 200 * 1024)
    connection, salvage = await open_in_memory(path)
    assert salvage is not None
    assert 0 < salvage.salvaged["outbox"] < ROWS
    assert salvage.left_out["outbox"] == ROWS - salvage.salvaged["outbox"]
    insert = "INSERT INTO node_frames VALUES (?, 0, 0, 0, ?)"
    await connection.write([(insert, [("n1", bytes(100_000))])])
    with pytest.raises(sqlite3.OperationalError, match="full"):
        await connection.write([(insert, [("n2", bytes(200_000))])])
    await connection.close()
