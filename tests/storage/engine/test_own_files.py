"""Looks at the files of an open database leave SQLite's locks on them alone."""

import os
import shutil
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from gateway.clock import Clock
from gateway.salvage.form import PAGE_BYTES
from gateway.storage.engine import own_files
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


def restore(path: Path) -> None:
    """Replace the file as a restore of a copy does, which sets the folder's time, too."""
    times = path.parent.stat()
    copy = path.with_name("copy")
    copy.write_bytes(path.read_bytes())
    copy.replace(path)
    os.utime(path.parent, ns=(times.st_atime_ns, times.st_mtime_ns))


def await_another_time(folder: Path) -> None:
    """Return when the file system gives a change another time than the folder's."""
    while folder.parent.stat().st_ctime_ns <= folder.stat().st_ctime_ns:
        (folder.parent / "change").touch()
        (folder.parent / "change").unlink()


CHANGES: dict[str, Callable[[Path], object]] = {
    "delete": Path.unlink,
    "rename": lambda path: path.rename(path.with_name("elsewhere")),
    "restore": restore,
    "rename the folder": lambda path: path.parent.rename(path.parent.with_name("elsewhere")),
    "replace the folder": lambda path: shutil.copytree(
        path.parent.rename(path.parent.with_name("elsewhere")), path.parent
    ),
}


@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES)
@pytest.mark.parametrize("old", [False, True])
async def test_a_check_of_each_commit_finds_a_lost_file(
    change: Callable[[Path], object],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    *,
    old: bool,
) -> None:
    folder = tmp_path / "data"
    folder.mkdir()
    database = await open_database(folder, Clock())
    files = OwnFiles(database.path, PAGE_BYTES)
    database.when_closed.append(files.close)
    await database.writer.script("CREATE TABLE filler (x)")
    if old:  # the last change of the folder is long ago: its time alone is compared
        await_another_time(folder)
        monkeypatch.setattr(own_files, "time", lambda: time.time() + 2 * own_files.RECENT)
    assert files.are_unchanged()
    if old:
        with monkeypatch.context() as patch:
            patch.setattr(own_files, "readlink", forbidden)
            assert files.are_unchanged()
    change(database.path)
    assert not files.are_unchanged()
    assert "tidegate.db" in files.fault()
    await database.close()


def forbidden(_: str) -> str:
    raise AssertionError
