"""The new database takes the damaged one's place as a whole, whenever the power goes."""

import shutil
import sqlite3
from pathlib import Path

import pytest

from gateway.clock import Clock
from gateway.salvage.form import PAGE_BYTES
from gateway.storage.engine.damage import note_damage, noted_damage
from gateway.storage.engine.database import FILE_NAME, open_database
from tests.support.disk.storage import Store, crash_image, open_store, outbox_row

ROWS = 200


class PowerCutError(Exception):
    """The test ends the work here."""


async def damaged(folder: Path) -> Path:
    """Leave a database that is to be salvaged, with its rows in file and log."""
    store = await open_store(folder / "live")
    for number in range(1, ROWS + 1):
        store.outbox.add(outbox_row(number))
    await store.settle()
    image = crash_image(folder / "live", folder / "image")
    await store.close()
    note_damage(image / FILE_NAME, "a page was bad")
    return image


@pytest.fixture(autouse=True)
def folders(tmp_path: Path) -> None:
    (tmp_path / "live").mkdir()


@pytest.mark.uncovered
@pytest.mark.parametrize("step", range(1, 7))
async def test_a_power_cut_at_any_rename_loses_nothing(
    tmp_path: Path, step: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = await damaged(tmp_path)
    rename, done = Path.rename, 0

    def cut(self: Path, target: Path) -> Path:
        nonlocal done
        done += 1
        if done == step:
            raise PowerCutError
        return rename(self, target)

    monkeypatch.setattr(Path, "rename", cut)
    try:
        database = await open_database(folder, Clock())
        await database.close()
        assert step > done
    except PowerCutError:
        assert step == done
    monkeypatch.undo()
    store = await open_store(folder)
    assert store.outbox.rows == ROWS
    await store.close()
    aside = {path.name.partition("Z")[2] for path in folder.glob("*.corrupt-*")}
    assert "" in aside
    assert not list(folder.glob("*.salvaged*"))


async def test_a_half_filled_database_is_begun_again(tmp_path: Path) -> None:
    folder = await damaged(tmp_path)
    half = sqlite3.connect(folder / f"{FILE_NAME}.salvaged")
    half.execute("CREATE TABLE half (x)")
    half.close()
    store = await open_store(folder)
    assert store.outbox.rows == ROWS
    await store.close()


async def _read_all(store: Store) -> None:
    for after in range(0, ROWS, 10):
        await store.outbox.fetch(after, 10)


async def test_damage_that_was_found_in_use_is_salvaged_at_the_next_start(tmp_path: Path) -> None:
    store = await open_store(tmp_path)
    for number in range(1, ROWS + 1):
        store.outbox.add(outbox_row(number, payload=bytes(30_000)))
    await store.close()
    store = await open_store(tmp_path)
    heard: list[str] = []
    store.database.on_damage.append(heard.append)
    path = tmp_path / FILE_NAME
    with path.open("rb+") as file:  # behind SQLite's back, as a card does it
        file.seek(PAGE_BYTES * 800)
        file.write(b"\xff" * 2 * PAGE_BYTES)
    with pytest.raises(sqlite3.DatabaseError):
        await _read_all(store)
    assert heard == [store.database.damaged]
    assert noted_damage(path) == store.database.damaged
    await store.close()
    again = await open_store(tmp_path)
    assert again.database.set_aside is not None
    assert ROWS - 4 <= again.outbox.rows < ROWS
    assert noted_damage(path) is None
    await again.close()


async def test_a_note_alone_costs_no_row(tmp_path: Path) -> None:
    store = await open_store(tmp_path)
    store.outbox.add(outbox_row(1))
    await store.close()
    note_damage(tmp_path / FILE_NAME, "a page was bad")
    again = await open_store(tmp_path)
    assert again.database.salvage is not None
    assert (again.outbox.rows, again.database.salvage.all_lost) == (1, 0)
    await again.close()


async def test_damage_in_the_middle_of_the_log_is_found_at_the_start(tmp_path: Path) -> None:
    store = await open_store(tmp_path / "live")
    for number in range(1, 11):
        store.outbox.add(outbox_row(number))
        await store.settle()
    folder = crash_image(tmp_path / "live", tmp_path / "image")
    await store.close()
    log = folder / f"{FILE_NAME}-wal"
    content = bytearray(log.read_bytes())
    content[len(content) // 2] ^= 1
    log.write_bytes(content)
    shutil.copytree(folder, tmp_path / "copy")
    silent = sqlite3.connect(tmp_path / "copy" / FILE_NAME)
    (seen,) = silent.execute("SELECT count(*) FROM outbox").fetchone()
    silent.close()
    assert seen < 10  # SQLite passes over it without a word
    again = await open_store(folder)
    assert again.database.set_aside is not None
    assert seen < again.outbox.rows <= 10
    await again.close()
