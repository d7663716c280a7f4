"""What is salvaged, left out, lost and dropped, and what is said of it."""

import sqlite3
from pathlib import Path

import pytest

from gateway.salvage import salvage as module
from gateway.salvage.cells import TABLE_LEAF, children, kind_of, rows_of
from gateway.salvage.layouts import Layout, layout_of
from gateway.salvage.pages import Pages
from gateway.salvage.salvage import salvage
from tests.support.disk.damaged_database import PAGE, Known, all_rows, fresh, table_names
from tests.support.disk.salvaged import ROWS, damage, salvaged


@pytest.mark.uncovered
def test_a_sound_database_is_copied_whole(tmp_path: Path, known: Known, left_open: Known) -> None:
    for each in (known, left_open):
        result, rows = salvaged(tmp_path, each.database, each.log)
        assert rows == each.rows
        assert (result.lost, result.lost_pages, result.numbers) == ({}, 0, [])
        assert result.salvaged["outbox"] == ROWS
    assert left_open.frame_count > 50
    assert known.frame_count == 0


def test_a_lock_that_stays_is_waited_for_once(
    tmp_path: Path, known: Known, monkeypatch: pytest.MonkeyPatch
) -> None:
    path, blocked = tmp_path / "damaged.db", []
    path.write_bytes(known.database)

    def noted(connection: sqlite3.Connection, table: str) -> Layout:
        try:
            return layout_of(connection, table)
        except sqlite3.OperationalError:
            blocked.append(table)
            raise

    monkeypatch.setattr(module, "layout_of", noted)
    monkeypatch.setattr(module, "LOCK_SECONDS", 0.01)
    other, connection = sqlite3.connect(path, isolation_level=None), fresh(tmp_path / "new.db")
    other.execute("PRAGMA locking_mode = EXCLUSIVE")
    other.execute("BEGIN IMMEDIATE")
    result = salvage(path, connection)
    assert (all_rows(connection), result.lost, len(blocked)) == (known.rows, {}, 1)
    for each in (connection, other):
        each.close()


def test_a_file_that_is_not_there(tmp_path: Path) -> None:
    connection = fresh(tmp_path / "new.db")
    assert salvage(tmp_path / "missing.db", connection).salvaged == {}
    connection.close()


def test_a_full_disk_leaves_out_what_finds_no_room(tmp_path: Path, known: Known) -> None:
    (tmp_path / "damaged.db").write_bytes(known.database)
    connection = fresh(tmp_path / "new.db")
    connection.execute("PRAGMA max_page_count = 60")
    result = salvage(tmp_path / "damaged.db", connection)
    rows = all_rows(connection)
    connection.close()
    assert 0 < len(rows["outbox"]) < ROWS
    assert result.left_out["outbox"] + len(rows["outbox"]) == ROWS
    assert result.lost == {}


def test_the_newest_pages_of_a_bounded_table_are_taken(tmp_path: Path, known: Known) -> None:
    (tmp_path / "damaged.db").write_bytes(known.database)
    connection = fresh(tmp_path / "new.db")
    result = salvage(tmp_path / "damaged.db", connection, {"outbox": 10 * PAGE})
    rows = all_rows(connection)["outbox"]
    connection.close()
    identifiers = sorted(row[0] for row in rows if isinstance(row[0], int))
    assert identifiers[-1] == ROWS
    assert identifiers == list(range(identifiers[0], ROWS + 1))
    assert result.left_out["outbox"] > ROWS // 2


def test_lost_numbers_are_between_the_rows_that_are_left(tmp_path: Path, known: Known) -> None:
    number, (_, lost_rows, _) = next(
        (number, page)
        for number, page in sorted(known.pages.items(), reverse=True)
        if page[0] == "outbox" and len(page[1]) > 3
    )
    result, rows = salvaged(tmp_path, damage(known.database, number, "zeros", 0))
    gone = known.rows["outbox"] - rows["outbox"]
    assert gone == set(lost_rows)
    for row in gone:
        assert any(
            each.epoch == row[2]
            and each.stream == row[3]
            and each.first <= int(str(row[4])) <= (each.last or ROWS)
            for each in result.numbers
        ), row


def test_rows_that_refer_to_lost_rows_are_dropped_and_counted(tmp_path: Path) -> None:
    path = tmp_path / "damaged.db"
    for target in (path, tmp_path / "new.db"):
        connection = fresh(target)
        connection.execute("CREATE TABLE parent (id INTEGER PRIMARY KEY, x TEXT) STRICT")
        connection.execute(
            "CREATE TABLE child (parent INTEGER NOT NULL, place INTEGER NOT NULL, x TEXT,"
            " PRIMARY KEY (parent, place)) STRICT, WITHOUT ROWID"
        )
        connection.execute(
            "CREATE TABLE grandchild (id INTEGER PRIMARY KEY, a INTEGER, b INTEGER,"
            " FOREIGN KEY (a, b) REFERENCES child (parent, place)) STRICT"
        )
        if target == path:
            connection.execute("BEGIN")
            for number in range(400):
                connection.execute("INSERT INTO parent VALUES (?, ?)", (number, "x" * 50))
                connection.execute("INSERT INTO child VALUES (?, 1, 'y')", (number,))
                connection.execute("INSERT INTO grandchild VALUES (?, ?, 1)", (number, number))
            connection.execute("COMMIT")
        connection.close()
    known = examine_pages(path, "parent")
    lost = len(known[1])
    path.write_bytes(damage(path.read_bytes(), known[0], "zeros", 0))
    connection = sqlite3.connect(tmp_path / "new.db", isolation_level=None)
    result = salvage(path, connection)
    counts = {name: len(rows) for name, rows in all_rows(connection).items()}
    connection.close()
    assert 0 < lost < 400
    assert (counts["parent"], counts["child"], counts["grandchild"]) == (400 - lost,) * 3
    assert result.dropped == {"child": lost, "grandchild": lost}


def examine_pages(path: Path, table: str) -> tuple[int, list[object]]:
    """Return a page with rows of the table, and its rows."""
    connection = sqlite3.connect(path)
    assert table in table_names(connection)
    query = "SELECT rootpage FROM sqlite_schema WHERE name = ?"
    (root,) = connection.execute(query, (table,)).fetchone()
    connection.close()
    pages = Pages(path)
    leaf = children(pages.read(root), root)[1]
    assert kind_of(pages.read(leaf), leaf) == TABLE_LEAF
    rows = rows_of(pages, pages.read(leaf), leaf).rows
    pages.close()
    return leaf, list(rows)
