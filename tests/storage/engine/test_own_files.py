"""Looks at the files of an open database leave SQLite's locks on them alone."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from gateway.clock import Clock
from gateway.salvage.form import PAGE_BYTES
from gateway.storage.engine.database import FILE_NAME, open_database
from gateway.storage.engine.own_files import OwnFiles

IN_USE = 128
"""The byte of the log's index on which every process that has the database open keeps a lock."""

TRY_TO_LOCK = f"""
import fcntl, sys
with open(sys.argv[1], "rb+") as file:
    try:
        fcntl.lockf(file, fcntl.LOCK_EX | fcntl.LOCK_NB, 1, {IN_USE})
    except OSError:
        sys.exit(3)
"""


def is_locked(index: Path) -> bool:
    """Return what another process finds, which would truncate an index that nobody uses."""
    done = subprocess.run([sys.executable, "-c", TRY_TO_LOCK, str(index)], check=False)
    return done.returncode == 3


@pytest.mark.uncovered
async def test_another_process_sees_that_the_database_is_in_use(tmp_path: Path) -> None:
    database = await open_database(tmp_path, Clock())
    index = tmp_path / f"{FILE_NAME}-shm"
    assert is_locked(index)
    files = OwnFiles(database.path, PAGE_BYTES)
    database.when_closed.append(files.close)
    assert files.fault() == ""
    assert is_locked(index)
    await database.close()
    assert not index.exists()


FILL = """
WITH RECURSIVE numbers (x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM numbers WHERE x < 99)
INSERT INTO filler SELECT randomblob(900) FROM numbers;
"""
FOLD = "PRAGMA wal_checkpoint(PASSIVE);"


async def test_a_database_that_gives_space_back_was_not_truncated(tmp_path: Path) -> None:
    database = await open_database(tmp_path, Clock())
    files = OwnFiles(database.path, PAGE_BYTES)
    database.when_closed.append(files.close)
    await database.writer.script(f"CREATE TABLE filler (x); {FILL} {FOLD}")
    assert files.fault() == ""
    large = database.path.stat().st_size
    await database.writer.script(f"DELETE FROM filler; PRAGMA incremental_vacuum(1000); {FOLD}")
    small = database.path.stat().st_size
    await database.writer.script(FILL)  # all of it in the log
    assert files.fault() == ""
    assert small == database.path.stat().st_size < large
    os.truncate(database.path, small - 1)
    assert files.fault() == f"{database.path} was truncated"
    await database.close()


@pytest.mark.parametrize("size", [None, 0, 1024])
async def test_files_that_are_gone_are_not_truncated(tmp_path: Path, size: int | None) -> None:
    """All is still in what SQLite has open, whatever is in its place."""
    database = await open_database(tmp_path, Clock())
    files = OwnFiles(database.path, PAGE_BYTES)
    database.when_closed.append(files.close)
    await database.writer.script(f"CREATE TABLE filler (x); {FILL} {FOLD}")
    assert files.fault() == ""
    database.path.rename(tmp_path / "elsewhere")
    if size is not None:
        database.path.write_bytes(bytes(size))
    assert (
        files.fault()
        == f"{database.path} was {'deleted or renamed' if size is None else 'replaced'}"
    )
    assert not files.is_truncated
    await database.close()
