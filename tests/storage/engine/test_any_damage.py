"""Whatever byte of the database is wrong, and whatever stands in its place: it opens."""

import asyncio
import os
import shutil
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing
from itertools import product
from pathlib import Path

import pytest

from gateway.clock import Clock
from gateway.errors import StartError
from gateway.storage.engine.damage import note_damage, noted_damage
from gateway.storage.engine.database import FILE_NAME, open_database
from tests.support.disk.storage import crash_image, open_store, outbox_row

ROWS = 20
HEADER_BYTES = 100

SCHEMA_STRIDE = int(os.environ.get("TIDEGATE_SCHEMA_STRIDE", "809"))
"""Every so many bytes of the schema's text are damaged; with 1 it takes minutes."""

HEADER_STRIDE = 5 if SCHEMA_STRIDE > HEADER_BYTES else 1
"""The same of the header; `make crashtest` damages each."""


@pytest.fixture(name="sound", scope="module")
def _sound(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    """A database with ROWS messages, after a stop."""
    folder = tmp_path_factory.mktemp("sound")
    asyncio.run(_fill(folder))
    return (folder / FILE_NAME).read_bytes()


async def _fill(folder: Path) -> None:
    store = await open_store(folder)
    for number in range(1, ROWS + 1):
        store.outbox.add(outbox_row(number))
    await store.close()


async def _rows_of(folder: Path) -> int | str:
    """Return how many messages are there after a start, or why there was none."""
    try:
        store = await open_store(folder)
    except Exception as error:  # noqa: BLE001 - every one is told with the others
        return f"{type(error).__name__}: {error}"
    rows = store.outbox.rows
    await store.close()
    return rows


async def _start_on(folder: Path, content: bytes) -> int | str:
    _clear(folder)
    (folder / FILE_NAME).write_bytes(content)
    return await _rows_of(folder)


def _clear(folder: Path) -> None:
    for each in folder.iterdir():
        each.unlink()


def _changed(content: bytes, place: int, value: int) -> bytes:
    return content[:place] + bytes([value]) + content[place + 1 :]


@pytest.mark.uncovered
async def test_no_byte_of_the_header_costs_a_row(tmp_path: Path, sound: bytes) -> None:
    failures = []
    for place in range(0, HEADER_BYTES, HEADER_STRIDE):
        for value in {sound[place] ^ 0x80, 3} - {sound[place]}:
            found = await _start_on(tmp_path, _changed(sound, place, value))
            if found != ROWS:
                failures.append((place, value, found))
    assert not failures


@pytest.mark.uncovered
async def test_no_byte_of_the_schema_stops_the_start(tmp_path: Path, sound: bytes) -> None:
    places = [
        place
        for statement in _statements(tmp_path, sound)
        for start in [sound.find(statement)]
        for place in range(start, start + len(statement) if start >= 0 else start, SCHEMA_STRIDE)
    ]
    assert len(places) * SCHEMA_STRIDE > 2_000
    failures = []
    for place in places:
        for value in (sound[place] | 0x80, 0):
            found = await _start_on(tmp_path, _changed(sound, place, value))
            if found != ROWS:
                failures.append((place, value, found))
    assert not failures


def _statements(folder: Path, content: bytes) -> Iterator[bytes]:
    (folder / "copy").write_bytes(content)
    with closing(sqlite3.connect(folder / "copy")) as connection:
        for (statement,) in connection.execute("SELECT sql FROM sqlite_schema WHERE sql NOT NULL"):
            yield statement.encode()


@pytest.mark.parametrize(
    "newer",
    [
        "CREATE TABLE of_tomorrow (x)",
        "ALTER TABLE outbox ADD COLUMN of_tomorrow TEXT",
        "CREATE INDEX of_tomorrow ON meta (value)",
    ],
)
async def test_a_version_is_newer_if_the_schema_says_so_too(
    tmp_path: Path, sound: bytes, newer: str
) -> None:
    assert await _start_on(tmp_path, sound) == ROWS
    path = tmp_path / FILE_NAME
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        connection.execute("PRAGMA user_version = 99")
        connection.execute(newer)
    before = path.read_bytes()
    with pytest.raises(StartError, match=r"schema version 99, this Tidegate supports up to \d+"):
        await open_database(tmp_path, Clock())
    assert path.read_bytes() == before


class PowerCutError(Exception):
    """The test ends the work here."""


async def _killed(folder: Path) -> Path:
    """Return a folder as a kill leaves it, with every row in the log."""
    store = await open_store(folder)
    for number in range(1, ROWS + 1):
        store.outbox.add(outbox_row(number))
    await store.settle()
    image = crash_image(folder, folder / "image")
    await store.close()
    return image


def _deleted(path: Path) -> None:
    path.unlink()


def _emptied(path: Path) -> None:
    path.write_bytes(b"")


@pytest.mark.parametrize("lose", [_deleted, _emptied])
async def test_a_database_that_is_gone_is_made_of_its_log(
    tmp_path: Path, lose: Callable[[Path], None]
) -> None:
    folder = await _killed(tmp_path)
    lose(folder / FILE_NAME)
    store = await open_store(folder)
    assert store.database.set_aside is not None
    assert store.database.salvage is not None
    assert store.outbox.rows == ROWS
    await store.close()


async def test_a_power_cut_while_it_is_made_of_its_log_loses_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = await _killed(tmp_path)
    (folder / FILE_NAME).unlink()

    def cut(*_: object) -> None:
        raise PowerCutError

    with monkeypatch.context() as patched:
        patched.setattr("gateway.storage.engine.replace._fill", cut)
        with pytest.raises(PowerCutError):
            await open_store(folder)
    assert await _rows_of(folder) == ROWS


def _directory(path: Path) -> None:
    path.mkdir()
    (path / "something").write_text("of somebody")


def _loop(path: Path) -> None:
    path.symlink_to(path.name)


def _link_to_nowhere(path: Path) -> None:
    path.symlink_to("nowhere/at/all")


OF_SQLITE = ["", "-wal", "-shm", "-journal"]
OWN = [".damaged", ".salvaged", ".salvaged-wal"]


@pytest.mark.uncovered
@pytest.mark.parametrize(
    ("make", "suffix"),
    [
        *product([os.mkfifo, _directory], OF_SQLITE),
        *product([_loop, _link_to_nowhere], OF_SQLITE[1:]),
    ],
)
async def test_what_is_no_regular_file_is_refused_in_one_line(
    tmp_path: Path, make: Callable[[Path], None], suffix: str
) -> None:
    folder = await _killed(tmp_path)
    odd = folder / f"{FILE_NAME}{suffix}"
    odd.unlink(missing_ok=True)
    make(odd)
    with pytest.raises(StartError, match=f"{odd}: not a regular file: move it away"):
        await open_store(folder)
    assert odd.is_symlink() or odd.exists()


@pytest.mark.uncovered
@pytest.mark.parametrize(
    ("make", "suffix"), [*product([os.mkfifo, _directory, _loop, _link_to_nowhere], OWN)]
)
async def test_what_is_no_file_of_ours_stops_nothing(
    tmp_path: Path, make: Callable[[Path], None], suffix: str
) -> None:
    folder = await _killed(tmp_path)
    with closing(sqlite3.connect(folder / FILE_NAME)) as connection:  # folds the log into the file
        connection.execute("SELECT count(*) FROM outbox").fetchone()
    shutil.copy(folder / FILE_NAME, tmp_path / "copy")
    odd = folder / f"{FILE_NAME}{suffix}"
    odd.unlink(missing_ok=True)
    make(odd)
    if suffix.startswith(".salvaged"):
        note_damage(folder / FILE_NAME, "so that it is salvaged")
    assert await _rows_of(folder) == ROWS
    if suffix != ".damaged":
        assert not odd.exists() or odd.is_file()


@pytest.mark.parametrize("make", [_loop, _link_to_nowhere])
async def test_a_database_that_is_a_link_to_nowhere_ends_with_a_line(
    tmp_path: Path, make: Callable[[Path], None]
) -> None:
    """Its disk may not be mounted: nothing is begun in its place."""
    make(tmp_path / FILE_NAME)
    with pytest.raises(StartError, match="move the file away"):
        await open_store(tmp_path)


async def test_a_damaged_database_behind_a_link_is_salvaged_with_its_log_where_it_is(
    tmp_path: Path, sound: bytes
) -> None:
    folder, disk = tmp_path / "data", tmp_path / "disk"
    folder.mkdir()
    disk.mkdir()
    (folder / FILE_NAME).symlink_to(disk / FILE_NAME)
    await _fill(folder)
    store = await open_store(folder)
    store.outbox.add(outbox_row(ROWS + 1))
    await store.settle()
    log = disk / f"{FILE_NAME}-wal"
    before = log.read_bytes()
    await store.close()
    (disk / FILE_NAME).write_bytes(_changed(sound, 105, 0xFF))
    log.write_bytes(before)
    assert await _rows_of(folder) == ROWS + 1
    assert (folder / FILE_NAME).is_symlink()
    assert [each.name for each in folder.iterdir()] == [FILE_NAME]
    assert list(disk.glob(f"{FILE_NAME}.corrupt-*[0-9Z]"))


async def test_a_note_that_is_no_file_takes_no_text(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / f"{FILE_NAME}.damaged")
    assert not note_damage(tmp_path / FILE_NAME, "a page was bad")
    assert noted_damage(tmp_path / FILE_NAME) is None
