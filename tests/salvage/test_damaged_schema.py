"""A damaged letter in what the schema says of a table costs none of its rows."""

import os
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from gateway.salvage.salvage import salvage
from gateway.storage.engine.database import FILE_NAME
from tests.support.disk.damaged_database import all_rows, fill, fresh

ROWS = 60

STRIDE = int(os.environ.get("TIDEGATE_SCHEMA_STRIDE", "401"))
"""Every so many bytes of each statement are damaged, and of the names before it one in seven of
that; with 1 it takes half an hour."""

DERIVED = "outbox_totals"
"""A table that is found out anew."""


@pytest.fixture
async def sound(tmp_path: Path) -> bytes:
    """A database with rows in its tables."""
    folder = tmp_path / "filled"
    folder.mkdir()
    path = await fill(folder, ROWS) / FILE_NAME
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("PRAGMA wal_checkpoint (TRUNCATE)")
    return path.read_bytes()


def places(path: Path) -> Iterator[int]:
    """Yield where the entries of tables in the schema are damaged."""
    content = path.read_bytes()
    query = "SELECT type || name || tbl_name, sql FROM sqlite_schema WHERE type = 'table'"
    with closing(sqlite3.connect(path)) as connection:
        for names, statement in connection.execute(query + " AND sql NOT NULL"):
            start = content.find(names.encode())
            assert start > 0
            root = start + len(names)
            first = start if STRIDE == 1 else start + len("table") + start % 5
            yield from range(first, root + 4, max(1, STRIDE // 7))
            yield from range(root + 4 + start % STRIDE, root + 4 + len(statement), STRIDE)


def rows_after(path: Path, scratch: Path) -> dict[str, set[tuple[object, ...]]]:
    scratch.unlink(missing_ok=True)
    with closing(fresh(scratch)) as target:
        salvage(path, target)
        return all_rows(target)


@pytest.mark.uncovered
def test_no_damaged_letter_of_the_schema_costs_a_row(tmp_path: Path, sound: bytes) -> None:
    path = tmp_path / "damaged.db"
    path.write_bytes(sound)
    expected, failures = rows_after(path, tmp_path / "new.db"), []
    assert sum(map(len, expected.values())) > 3 * ROWS
    found = set(places(path))
    assert len(found) > 25
    for place in sorted(found):
        value = sound[place] ^ (0x80 if place % 2 else 1)
        path.write_bytes(sound[:place] + bytes([value]) + sound[place + 1 :])
        rows = rows_after(path, tmp_path / "new.db")
        failures += [
            (place, value, table, len(expected[table] - rows[table]))
            for table in expected
            if table != DERIVED and rows[table] != expected[table]
        ]
    assert not failures


def test_a_damaged_name_of_a_column_is_not_taken_for_a_text(tmp_path: Path, sound: bytes) -> None:
    place = sound.find(b"topic TEXT", sound.find(b"CREATE TABLE rejected"))
    path = tmp_path / "damaged.db"
    path.write_bytes(sound)
    expected = rows_after(path, tmp_path / "new.db")["rejected"]
    path.write_bytes(sound[:place] + b"u" + sound[place + 1 :])
    assert rows_after(path, tmp_path / "new.db")["rejected"] == expected
    assert expected
