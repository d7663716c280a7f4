"""Adds the rows of a database that was set aside to the present one."""

import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

from gateway.salvage.form import tables_of
from gateway.salvage.insert import Insert
from gateway.salvage.layouts import Layout, layout_of
from gateway.salvage.salvage import DERIVED, RULE_EPOCHS, Salvage

NOT_COPIED = frozenset(
    {*DERIVED, "history", "history_rules", "history_subscriptions", "outbox_steps"}
)
"""Tables that only describe their own database, or whose order cannot be restored."""

OWN_NAMES = ("starts", "history", "rule_epochs", "outbox_", "board/", "clock", "uplink_session")
"""Beginnings of names in `meta` that only describe their own database or its last session."""

REFERS = {
    ("session", "id"): "session",
    ("subscription", "session"): "session",
    ("delivery", "session"): "session",
    ("incoming", "session"): "session",
    ("attempt", "session"): "session",
    ("message", "id"): "message",
    ("delivery", "message"): "message",
    ("retained", "id"): "retained",
    ("outbox", "id"): "outbox",
    ("rejected", "id"): "rejected",
    ("ledger", "id"): "ledger",
    ("clock_spans", "id"): "clock_spans",
    ("clock_records", "id"): "clock_records",
}
"""Columns by table whose numbers continue after those of this other table."""

NAMES = {"session": "client_id", "retained": "topic"}
"""Rows of the same name in the present database are newer than those set aside."""


class BringIn:
    """Adds the rows of `source`, a sound database, to `target`.

    Present rows of `target` stay: a session of the same client, a retained message of the same
    topic.
    """

    def __init__(self, source: sqlite3.Connection, target: sqlite3.Connection) -> None:
        self.result = Salvage()
        self._source = source
        self._target = target
        self._tables = [name for name in tables_of(target) if name in tables_of(source)]
        self._shifts = {each: self._last(each) for each in self._tables if (each, "id") in REFERS}
        self._skipped = self._known("session")
        self._retained = self._known("retained")
        self._messages = self._undelivered()

    def run(self, mark: str) -> None:
        """Add all of it in one transaction, with a `mark`; raise sqlite3.Error with nothing done.

        The mark prevents a second time.
        """
        self._target.execute("BEGIN IMMEDIATE")
        try:
            self._target.execute("INSERT INTO meta (name, value) VALUES (?, 1)", (mark,))
            for name in self._tables:
                if name not in NOT_COPIED:
                    self._bring(layout_of(self._source, name), layout_of(self._target, name))
            self._target.execute("DELETE FROM outbox_totals")  # the rows are counted again
            self._target.execute(RULE_EPOCHS)
            self._target.execute("COMMIT")
        except BaseException:
            if self._target.in_transaction:
                self._target.execute("ROLLBACK")
            raise

    def _bring(self, old: Layout, new: Layout) -> None:
        wanted = {column.name for column in new.columns}
        names = [column.name for column in old.columns if column.name in wanted]
        shifts = [self._shifts.get(REFERS.get((old.name, name), ""), 0) for name in names]
        marks = ", ".join("?" * len(names))
        insert = " ".join(
            ("INSERT OR IGNORE INTO", f'"{old.name}"', f"({_listed(names)}) VALUES ({marks})")
        )
        brought = not_copied = 0
        for row in self._rows(self._source, old.name, names):
            if not self._stays_out(old.name, dict(zip(names, row, strict=True))):
                pairs = zip(row, shifts, strict=True)
                values = [value + shift if shift else value for value, shift in pairs]
                if self._target.execute(insert, values).rowcount > 0:
                    brought += 1
                    continue
            not_copied += 1
        if brought:
            self.result.salvaged[old.name] = brought
        if not_copied:
            self.result.dropped[old.name] = not_copied

    def _stays_out(self, table: str, row: dict[str, object]) -> bool:
        if table == "meta":
            return str(row["name"]).startswith(OWN_NAMES)
        if table == "message":
            return row["id"] not in self._messages
        if table == "retained":
            return row["id"] in self._retained
        return row.get("id" if table == "session" else "session") in self._skipped

    def _known(self, table: str) -> set[object]:
        """Return the ids in `source` of rows that `target` has under the same name."""
        if table not in self._tables:
            return set()
        column = NAMES[table]
        there = {name for (name,) in self._rows(self._target, table, [column])}
        rows = self._rows(self._source, table, ["id", column])
        return {identifier for identifier, name in rows if name in there}

    def _undelivered(self) -> set[object]:
        """Return the undelivered messages of a session that is added."""
        if "delivery" not in self._tables:
            return set()
        rows = self._rows(self._source, "delivery", ["session", "message"])
        return {message for session, message in rows if session not in self._skipped}

    def _last(self, table: str) -> int:
        return max((last for (last,) in self._rows(self._target, table, ["id"])), default=0)

    def _rows(
        self, connection: sqlite3.Connection, table: str, names: list[str]
    ) -> Iterator[tuple[Any, ...]]:
        statement = " ".join(("SELECT", _listed(names), "FROM", f'"{table}"', "NOT INDEXED"))
        return connection.execute(statement)


def bring_in_file(path: Path, database: Path) -> Salvage:
    """Add the content of the file at `path` to a database, once.

    Raises sqlite3.Error with nothing done.
    """
    mark = f"brought_in/{path.name}"
    uri = f"{path.absolute().as_uri()}?mode=ro"
    with (
        closing(sqlite3.connect(uri, uri=True, isolation_level=None)) as source,
        closing(sqlite3.connect(database, isolation_level=None)) as target,
    ):
        if target.execute("SELECT 1 FROM meta WHERE name = ?", (mark,)).fetchone():
            return Salvage()
        (found,) = source.execute("PRAGMA integrity_check(1)").fetchone()
        if found != "ok":
            raise sqlite3.DatabaseError(str(found).splitlines()[-1])
        bring = BringIn(source, target)
        bring.run(mark)
        return bring.result


def _listed(names: list[str]) -> str:
    return ", ".join(f'"{name}"' for name in names)


def carry_over(path: Path, target: sqlite3.Connection) -> Salvage:
    """Copy every row of the tables that `target` also has, and return the result.

    `target` is an empty database at the newest schema, in autocommit mode. Raises sqlite3.Error if
    the old database cannot be read after all.
    """
    result = Salvage()
    target.execute("PRAGMA foreign_keys = OFF")
    uri = f"{path.absolute().as_uri()}?mode=ro"
    with closing(sqlite3.connect(uri, uri=True, isolation_level=None)) as source:
        there = set(tables_of(source))
        for table in tables_of(target):
            if table in there and table not in DERIVED:
                _copy(source, target, table, result)
    return result


def _copy(
    source: sqlite3.Connection, target: sqlite3.Connection, table: str, result: Salvage
) -> None:
    old = layout_of(source, table)
    insert = Insert(target, old, layout_of(target, table))
    names = ", ".join(f'"{column.name}"' for column in old.columns)
    # Without an index: with a wrong entry in one SQLite skips rows.
    statement = " ".join(("SELECT", names, "FROM", f'"{table}"', "NOT INDEXED"))
    rows = 0
    for row in source.execute(statement):
        insert.add(row)
        rows += 1
    insert.flush()
    if insert.inserted:
        result.salvaged[table] = insert.inserted
    if lost := rows - insert.inserted - insert.left_out:
        result.lost[table] = lost
    if insert.left_out:
        result.left_out[table] = insert.left_out
