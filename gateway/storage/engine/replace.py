"""Replaces a database that is damaged, or of an earlier schema."""

import os
import sqlite3
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

from gateway.clock import Clock
from gateway.storage.engine.damage import forget_damage
from gateway.storage.engine.files import sync_folder

if TYPE_CHECKING:
    from gateway.salvage.salvage import Salvage

SALVAGED = ".salvaged"
"""Suffix of the new database until it takes its place."""

DAMAGED, SOUND = "corrupt", "before"
"""Infix in the name of a database that is set aside: it is damaged, or of an earlier schema."""

Fill = Callable[[Path, sqlite3.Connection], "Salvage"]
"""Copies the rows of a database into a new one that is open."""

BESIDE = ("-journal", "-wal", "-shm")
"""Suffixes of SQLite's other files."""


def replace(
    path: Path, clock: Clock, create: Callable[[Path], None], fill: Fill, *, damaged: bool = True
) -> "tuple[Path, Salvage]":
    """Replace `path` by a new database with its content; return its new name and the result.

    `create` makes an empty database at the newest schema, and `fill` copies rows into it. The new
    one is completely on disk before the old one is renamed. So a crash at any point loses nothing:
    the next start begins again, or completes it with `finish`. Raises OSError, sqlite3.Error.
    """
    new = _new(path)
    if not path.exists():  # for `finish`, this means that the new one is complete
        path.touch()
        sync_folder(path.parent)
    for suffix in ("", *BESIDE):
        _clear(new.with_name(new.name + suffix), clock)
    create(new)
    result = _fill(path, new, fill)
    aside = _free_name(path, clock, DAMAGED if damaged else SOUND)
    path.rename(aside)
    sync_folder(path.parent)
    finish(path, clock, aside)
    return aside, result


def finish(path: Path, clock: Clock, aside: Path | None = None) -> None:
    """Complete a replacement after the damaged file was renamed; otherwise do nothing.

    Called before a database is opened, it completes what a crash interrupted.
    """
    new = _new(path)
    if path.exists() or not new.exists():
        return
    aside = aside or _free_name(path, clock)
    # first, or SQLite would replay the old log into the new database
    for suffix in BESIDE:
        if os.path.lexists(old := path.with_name(path.name + suffix)):
            old.rename(aside.with_name(aside.name + suffix))
    forget_damage(path)
    sync_folder(path.parent)
    new.rename(path)
    sync_folder(path.parent)


def set_aside_between(path: Path, first: float, last: float) -> bool:
    """Return whether a database was set aside between two moments, in seconds since 1970.

    A board without a clock begins in 1970 until NTP has the time: files of earlier runs seem later.
    """
    return any(
        first <= each.lstat().st_ctime <= last
        for each in path.parent.glob(f"{path.name}.{DAMAGED}-*[0-9Z]")
    )


def put_in_place(whole: Path, path: Path, clock: Clock) -> None:
    """Rename `whole`, a database that is on disk, to `path` in place of the file there."""
    aside = _free_name(path, clock)
    if path.exists():
        path.rename(aside)
    # under this name `finish` completes it after a crash
    whole.rename(_new(path))
    sync_folder(path.parent)
    finish(path, clock, aside)


def _fill(path: Path, new: Path, fill: Fill) -> "Salvage":
    connection = sqlite3.connect(new, isolation_level=None)
    try:
        # Nobody relies on the new file before it is renamed: one sync at the end suffices.
        connection.execute("PRAGMA journal_mode = MEMORY")
        connection.execute("PRAGMA synchronous = OFF")
        result = fill(path, connection)
        connection.execute("PRAGMA journal_mode = WAL")
    finally:
        connection.close()
    with new.open("rb+") as file:
        os.fsync(file.fileno())
    return result


def _new(path: Path) -> Path:
    return path.with_name(path.name + SALVAGED)


def _clear(left_over: Path, clock: Clock) -> None:
    if left_over.is_dir():
        left_over.rename(_free_name(left_over, clock))
    else:
        left_over.unlink(missing_ok=True)


def _free_name(path: Path, clock: Clock, why: str = DAMAGED) -> Path:
    moment = datetime.fromtimestamp(clock.wall_ms() / 1000, UTC)
    stem = f"{path.name}.{why}-{moment:%Y%m%dT%H%M%SZ}"
    found, repeat = path.with_name(stem), 0
    while found.exists():
        repeat += 1
        found = path.with_name(f"{stem}-{repeat}")
    return found
