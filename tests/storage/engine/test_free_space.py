import asyncio
import os
import sqlite3
from contextlib import closing
from pathlib import Path
from types import SimpleNamespace

import pytest

from gateway.storage.engine.connection import BUSY_TIMEOUT_MS
from gateway.storage.engine.files import log_bytes, log_of
from gateway.storage.engine.free_space import FOLDED_LOG_BYTES, RESERVE_BYTES, FreeSpace, Reserve
from tests.support.disk.storage import open_store

BLOB = "INSERT INTO node_frames VALUES (?, 0, 0, 0, ?)"


def leave_free(size: int, monkeypatch: pytest.MonkeyPatch) -> None:
    found = SimpleNamespace(f_frsize=4096, f_blocks=1 << 20, f_bavail=size // 4096, f_flag=0)
    monkeypatch.setattr(os, "statvfs", lambda _: found)


@pytest.mark.parametrize(
    ("rows", "free", "is_folded"),
    [
        (50, RESERVE_BYTES, True),
        (50, 2 * RESERVE_BYTES, False),
        (1, RESERVE_BYTES, False),  # of a log this short no room is to be gained
    ],
)
async def test_the_log_is_kept_short_while_room_is_scarce(
    rows: int, free: int, is_folded: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    leave_free(free, monkeypatch)
    store = await open_store(tmp_path)
    path, connection = store.database.path, store.database.writer
    await connection.query("PRAGMA wal_checkpoint(TRUNCATE)", (), lambda cursor: cursor.fetchall())
    store.writer.attempts.free_space = FreeSpace(path, connection, Reserve(tmp_path))
    for number in range(rows):
        store.writer.add(BLOB, (number, bytes(4_000)))
    await store.settle()
    assert (log_bytes(log_of(path)) == 0) is is_folded
    assert is_folded or (log_bytes(log_of(path)) > FOLDED_LOG_BYTES) is (rows > 1)
    assert not store.writer.attempts.free_space.exhausted
    await store.close()


async def test_a_commit_does_not_wait_for_who_reads(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    leave_free(RESERVE_BYTES, monkeypatch)
    store = await open_store(tmp_path)
    path, connection = store.database.path, store.database.writer
    store.writer.attempts.free_space = FreeSpace(path, connection, Reserve(tmp_path))
    with closing(sqlite3.connect(path, isolation_level=None)) as other:
        other.execute("BEGIN")
        other.execute("SELECT count(*) FROM node_frames").fetchone()
        for number in range(50):
            store.writer.add(BLOB, (number, bytes(4_000)))
        async with asyncio.timeout(BUSY_TIMEOUT_MS / 2_000):
            await store.settle()
    assert log_bytes(log_of(path)) > FOLDED_LOG_BYTES
    patience = await connection.query("PRAGMA busy_timeout", (), lambda cursor: cursor.fetchone())
    assert patience == (BUSY_TIMEOUT_MS,)
    await store.close()
