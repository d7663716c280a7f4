"""The file could be opened and checked, and then the disk takes nothing any more."""

import sqlite3
from pathlib import Path

import pytest

from gateway.clock import Clock
from gateway.errors import StartError
from gateway.storage.engine import database as database_module
from gateway.storage.engine import database_file
from gateway.storage.engine.connection import Batch, Connection
from gateway.storage.engine.database import COUNT_START, Database, open_database, start_number
from gateway.storage.engine.free_space import Reserve

COMMIT = Connection.commit


class Refusals:
    """Makes so many writes fail in this way, and counts all."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, code: int, count: int) -> None:
        self.writes = 0
        refusals = self

        def commit(connection: Connection, batch: Batch) -> None:
            refusals.writes += 1
            if refusals.writes <= count:
                error = sqlite3.OperationalError("the disk does not take it")
                error.sqlite_errorcode = code
                raise error
            COMMIT(connection, batch)

        monkeypatch.setattr(Connection, "commit", commit)


async def opened(folder: Path) -> tuple[Database, int]:
    database = await open_database(folder, Clock(), COUNT_START)
    return database, await start_number(database)


@pytest.fixture(autouse=True)
async def earlier(tmp_path: Path) -> None:
    database, _ = await opened(tmp_path)
    await database.close()


@pytest.mark.parametrize(
    ("code", "why"),
    [(sqlite3.SQLITE_IOERR_WRITE, "cannot be written"), (sqlite3.SQLITE_FULL, "no space for")],
)
async def test_everything_is_in_memory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, code: int, why: str
) -> None:
    Refusals(monkeypatch, code, database_module.ATTEMPTS)
    database, number = await opened(tmp_path)
    assert why in database.in_memory
    assert database.may_recover
    assert number == 2
    await database.close()


async def test_an_error_that_passes_is_no_reason(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    refusals = Refusals(monkeypatch, sqlite3.SQLITE_IOERR_WRITE, 1)
    database, number = await opened(tmp_path)
    assert not database.in_memory
    assert (number, refusals.writes) == (2, 2)
    await database.close()


async def test_a_full_disk_is_given_the_reserve(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert Reserve(tmp_path).hold()
    refusals = Refusals(monkeypatch, sqlite3.SQLITE_FULL, 1)
    database, number = await opened(tmp_path)
    assert not database.in_memory
    assert not database.reserve.held_bytes
    assert (number, refusals.writes) == (2, 2)
    await database.close()


async def test_a_file_system_that_became_read_only(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    refusals = Refusals(monkeypatch, sqlite3.SQLITE_READONLY, 1)
    monkeypatch.setattr(database_file, "is_read_only", lambda _: refusals.writes > 0)
    database, number = await opened(tmp_path)
    assert "is on a read-only file system" in database.in_memory
    assert not database.may_recover
    assert number == 2
    await database.close()


async def test_what_is_wrong_otherwise_ends_the_start(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    Refusals(monkeypatch, sqlite3.SQLITE_BUSY, 1)
    with pytest.raises(StartError, match=r"tidegate\.db: the disk does not take it"):
        await opened(tmp_path)
