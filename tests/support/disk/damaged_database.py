"""A real database with rows of every kind, the pages they are on, and ways to damage it."""

import sqlite3
from pathlib import Path

from gateway.counters import Counters
from gateway.mqtt.message import Message
from gateway.salvage.cells import Search, kind_of, rows_of
from gateway.salvage.form import PAGE_BYTES
from gateway.salvage.layouts import Layout, layout_of
from gateway.salvage.pages import Pages
from gateway.salvage.wal import HEADER_BYTES, frame_bytes
from gateway.storage.engine.database import FILE_NAME
from gateway.storage.engine.migrations.migrate import migrate
from gateway.storage.history.history import History, RecordedRule
from gateway.storage.state.rule_states import RuleKey, RuleStates
from tests.support.disk.storage import Store, crash_image, open_store, outbox_row

PAGE = PAGE_BYTES

Row = tuple[object, ...]


async def fill(folder: Path, rows: int) -> Path:
    """Make a database with `rows` messages and more; return the folder a kill leaves of it."""
    store = await open_store(folder)
    states = await RuleStates(store.database, store.writer).restore(
        [RuleKey("main", "sensors/#", "CHANGED(value)")]
    )
    history = History(store.database, store.writer, Counters(), 3600, 1 << 20)
    await history.begin("00a1b2c3d4", 1, [RecordedRule(0, "main", "sensors/#", None, "live")])
    for number in range(1, rows + 1):
        long = b"\xff" * 9_000 if number % 40 == 0 else bytes(number % 200)
        stream = "main" if number % 3 else "other"
        store.outbox.add(outbox_row(number, stream=stream, payload=long))
        if number % 4 == 0:
            history.add(Message("sensors/n1/x", bytes(50), received_at=1_763_740_000_000), ())
        if number % 5 == 0:
            store.node_frames.remember(f"n{number % 90}", number % 3, number)
            for state in states.values():
                state.save(f"sensors/{number}", [number, "x"])
        if number % 3 == 0:
            _keep(store, number)
        if number % 50 == 0:
            store.rejected.add(outbox_row(number), 0x99, 1)
            await store.settle()
    await store.settle()
    image = crash_image(folder, folder / "image")
    await store.close()
    return image


def _keep(store: Store, number: int) -> None:
    """Gather what a session with this number is and is owed, and a retained message."""
    add = store.writer.add
    add(
        "INSERT INTO session VALUES (?, ?, 3600, NULL, NULL, '0.0.0.0:1883', 0, 1)",
        (number, f"client-{number}"),
    )
    add("INSERT INTO subscription VALUES (?, 'a/#', 1, 0, 0, NULL, NULL, 0, 0, NULL)", (number,))
    statement = "INSERT INTO message (id, topic, payload, qos, retain, time)"
    add(f"{statement} VALUES (?, 'a/b', ?, 1, 0, 1)", (number, bytes(number % 100)))
    add(
        "INSERT INTO delivery VALUES (?, 1, ?, 1, 0, 0, 0, NULL, NULL, 100, 0, NULL, 1, NULL)",
        (number, number),
    )
    add("INSERT INTO incoming VALUES (?, ?)", (number, number))
    statement = "INSERT INTO retained (topic, payload, qos, retain, time)"
    add(f"{statement} VALUES (?, ?, 1, 1, 1)", (f"state/{number}", bytes(30)))


REFERENCES = {
    "subscription": {0: "session"},
    "delivery": {0: "session", 2: "message"},
    "incoming": {0: "session"},
}
"""Columns by table that hold the id of a row in another."""


def fresh(path: Path) -> sqlite3.Connection:
    """Return a connection to a new database at the newest schema."""
    connection = sqlite3.connect(path, isolation_level=None)
    connection.execute(f"PRAGMA page_size = {PAGE}")
    connection.execute("PRAGMA auto_vacuum = INCREMENTAL")
    connection.execute("PRAGMA synchronous = OFF")
    migrate(connection)
    return connection


def table_names(connection: sqlite3.Connection) -> list[str]:
    query = "SELECT name FROM sqlite_schema WHERE type = 'table' AND name NOT LIKE 'sqlite_%'"
    return [name for (name,) in connection.execute(query)]


def all_rows(connection: sqlite3.Connection) -> dict[str, set[Row]]:
    """Return the rows of every table as SQLite reads them."""
    return {
        name: set(connection.execute(f"SELECT * FROM {name}").fetchall())
        for name in table_names(connection)
    }


class Known:
    """The files of an undamaged database, and the rows of each page by table.

    `pages` says of a page the table, its rows, and the other pages that these need.
    """

    def __init__(
        self,
        database: bytes,
        log: bytes,
        rows: dict[str, set[Row]],
        pages: dict[int, tuple[str, list[Row], set[int]]],
    ) -> None:
        self.database = database
        self.log = log
        self.rows = rows
        self.pages = pages

    def __repr__(self) -> str:
        return f"Known({self.page_count} pages, {self.frame_count} frames)"

    @property
    def page_count(self) -> int:
        return len(self.database) // PAGE

    def page(self, number: int) -> bytes:
        return self.database[(number - 1) * PAGE : number * PAGE]

    def with_page(self, number: int, page: bytes) -> bytes:
        """Return the database with another content of one page."""
        return self.database[: (number - 1) * PAGE] + page + self.database[number * PAGE :]

    @property
    def frame_count(self) -> int:
        """How many frames are of the log's present generation, which their salts say."""
        count = max(0, len(self.log) - HEADER_BYTES) // frame_bytes()
        starts = (HEADER_BYTES + number * frame_bytes() for number in range(count))
        return sum(self.log[start + 8 : start + 16] == self.log[16:24] for start in starts)

    def expected(self, damaged: set[int]) -> dict[str, set[Row]]:
        """Return the rows of which, and of those they refer to, no page is damaged."""
        found: dict[str, set[Row]] = {name: set() for name in self.rows}
        for number, (name, rows, others) in self.pages.items():
            if number not in damaged and not others & damaged:
                found[name] |= set(rows)
        for name, columns in REFERENCES.items():
            for column, parent in columns.items():
                there = {row[0] for row in found[parent]}
                found[name] = {row for row in found[name] if row[column] in there}
        return found


def examine(folder: Path, scratch: Path) -> Known:
    """Read the database in `folder`, page by page and with SQLite, which must agree."""
    path = folder / FILE_NAME
    log = path.with_name(FILE_NAME + "-wal")
    database, log_bytes = path.read_bytes(), log.read_bytes() if log.exists() else b""
    pages = Pages(path)
    connection = fresh(scratch)
    layouts = {name: layout_of(connection, name) for name in table_names(connection)}
    query = "SELECT name, rootpage FROM sqlite_schema WHERE rootpage > 0"
    roots = {root: name for name, root in connection.execute(query)}
    connection.close()
    places = Search(pages, roots, frozenset(layouts), _Any(layouts)).places()
    by_page: dict[int, tuple[str, list[Row], set[int]]] = {}
    for name, numbers in places.pages.items():
        for number in numbers:
            pages.of_long_records.clear()
            cells = rows_of(pages, pages.read(number), number)
            rows: list[Row] = [tuple(layouts[name].complete(*row) or ()) for row in cells.rows]
            by_page[number] = (name, rows, set(pages.of_long_records))
    pages.close()
    connection = sqlite3.connect(path)
    rows_by_table = all_rows(connection)
    connection.close()
    path.write_bytes(database)
    known = Known(database, log_bytes, rows_by_table, by_page)
    assert known.expected(set()) == rows_by_table
    return known


class _Any:
    """Trusts the trees of an undamaged database."""

    def __init__(self, layouts: dict[str, Layout]) -> None:
        self._layouts = layouts

    def fits(self, name: str, number: int, page: bytes) -> bool:
        return kind_of(page, number) in self._layouts[name].kinds

    def distinct(self) -> list[str]:
        return []
