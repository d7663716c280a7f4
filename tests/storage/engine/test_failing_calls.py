"""Each call of a start on the database's folder fails in turn: no row is lost, and it says why."""

import asyncio
import operator
import os
import shutil
import sqlite3
from collections.abc import Callable
from contextlib import closing
from functools import partial
from pathlib import Path

import pytest

from gateway.clock import Clock
from gateway.errors import StartError
from gateway.storage.engine.damage import note_damage
from gateway.storage.engine.database import FILE_NAME, open_database
from gateway.storage.engine.unread import note_unread
from tests.crash.conftest import LONG
from tests.support.disk.damaged_database import Row, all_rows, fill
from tests.support.disk.earlier_version import make_earlier
from tests.support.disk.failing_calls import ERRORS, FailingCalls

ROWS = 12

CALLS = 60
"""More calls than a start makes."""


@pytest.fixture(scope="module")
def killed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What a kill leaves of a database: much of it is in the log."""
    return asyncio.run(fill(tmp_path_factory.mktemp("killed"), ROWS))


def as_it_is(folder: Path) -> None:
    assert folder.is_dir()


def with_a_note(folder: Path) -> None:
    assert note_damage(folder / FILE_NAME, "an earlier run found it")


def of_another_schema(folder: Path) -> None:
    with closing(sqlite3.connect(folder / FILE_NAME, isolation_level=None)) as connection:
        connection.execute("DROP TABLE clock_spans")


def of_an_earlier_version(folder: Path) -> None:
    make_earlier(folder / FILE_NAME)


def out_of_its_place(folder: Path) -> None:
    with closing(sqlite3.connect(folder / FILE_NAME)) as connection:
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    (folder / FILE_NAME).rename(folder / f"{FILE_NAME}.salvaged")


def unread(folder: Path) -> None:
    aside = folder / f"{FILE_NAME}.corrupt-20251121T154640Z"
    for suffix in ("", "-wal"):
        (folder / f"{FILE_NAME}{suffix}").rename(f"{aside}{suffix}")
    note_unread(aside, "the disk gave nothing")


def rows_of(path: Path) -> dict[str, set[Row]]:
    with closing(sqlite3.connect(path)) as connection:
        return {name: rows for name, rows in all_rows(connection).items() if name in TABLES}


TABLES = ("outbox", "session", "subscription", "delivery", "message", "retained", "incoming")


async def _start(folder: Path) -> str:
    """Open and close the database; return why it is not on disk."""
    try:
        database = await open_database(folder, Clock())
    except StartError as error:
        return str(error)
    await database.close()
    return database.in_memory


async def _as_started(folder: Path, state: Callable[[Path], None]) -> Path:
    """Return a database whose rows a start must have; an earlier version has fewer columns."""
    if state is of_an_earlier_version:
        state(folder)
        assert await _start(folder) == ""
    return folder / FILE_NAME


@pytest.mark.uncovered
@pytest.mark.parametrize(
    "state",
    [as_it_is, with_a_note, of_another_schema, of_an_earlier_version, out_of_its_place, unread],
)
async def test_no_call_of_a_start_that_fails_costs_a_row(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, killed: Path, state: Callable[[Path], None]
) -> None:
    image = tmp_path / "image"
    shutil.copytree(killed, image)
    before = rows_of(await _as_started(shutil.copytree(killed, tmp_path / "before"), state))
    state(image)
    failed = set[int]()
    for number in range(0, CALLS, 1 if LONG else 2):
        for error in ERRORS if LONG else [ERRORS[number % len(ERRORS)]]:
            folder = shutil.copytree(image, tmp_path / "data")
            with monkeypatch.context() as patched:
                calls = FailingCalls(patched, folder)
                calls.error = error
                calls.fails = partial(operator.eq, number)
                said = await _start(folder)
            failed.update([number] if calls.failed else [])
            assert not said or os.strerror(error) in said or str(folder) in said, (number, said)
            assert await _start(folder) == "", (number, error)
            found = rows_of(folder / FILE_NAME)
            assert found == before, (number, error, calls.seen[: number + 1], said)
            shutil.rmtree(folder)
        if number not in failed:
            break  # it makes no more calls
    assert failed
