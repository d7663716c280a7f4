"""Inserts the rows of a table into a new database."""

import sqlite3
from collections.abc import Iterator, Sequence

from gateway.salvage.form import tables_of
from gateway.salvage.layouts import Layout

CHUNK_ROWS = 1_000
"""Rows that are inserted and committed at a time."""

FORMER_NAMES = {("ledger", "fate"): "outcome", ("ledger", "cause"): "reason"}
"""Former names of columns by table, in databases of 2026-11-23."""

MEANWHILE = {("ledger", "uplink"): ""}
"""Values of required columns that rows of 2026-11-23 lack, by table."""

CHUNK_BYTES = 4 * 1024 * 1024
"""Bytes of binary values in a chunk, after which it ends earlier."""


class Insert:
    """Inserts rows a chunk at a time; an existing row counts once.

    `inserted` are in the table now, `refused` violate its constraints, and `left_out` found no
    space; `lost` is for the caller to count unreadable ones.
    """

    def __init__(self, target: sqlite3.Connection, old: Layout, new: Layout) -> None:
        self.inserted = self.lost = self.refused = self.left_out = 0
        self._target = target
        self._rows: list[Sequence[object]] = []
        columns = {column.name: column for column in new.columns}
        names = [FORMER_NAMES.get((old.name, column.name), column.name) for column in old.columns]
        self._places = [i for i, name in enumerate(names) if name in columns]
        used = [names[i] for i in self._places]
        missing = [name for table, name in MEANWHILE if table == new.name and name not in used]
        self._added = [MEANWHILE[new.name, name] for name in missing]
        listed = ", ".join(f'"{name}"' for name in (*used, *missing))
        marks = ", ".join("?" * (len(used) + len(missing)))
        self._statement = " ".join(
            ("INSERT OR IGNORE INTO", f'"{new.name}"', f"({listed}) VALUES ({marks})")
        )
        self._blobs = [i for i, column in enumerate(old.columns) if column.types == (bytes,)]
        self._all = len(self._places) == len(old.columns) and not missing
        self._full = False
        self._bytes = 0

    def add(self, row: Sequence[object]) -> None:
        """Insert a row, with values in the old layout, with the next chunk."""
        self._rows.append(row if self._all else self._as_new(row))
        for place in self._blobs:
            blob = row[place]
            if isinstance(blob, bytes):
                self._bytes += len(blob)
        if len(self._rows) >= CHUNK_ROWS or self._bytes >= CHUNK_BYTES:
            self.flush()

    def _as_new(self, row: Sequence[object]) -> list[object]:
        return [*(row[i] for i in self._places), *self._added]

    def flush(self) -> None:
        """Insert the rows added since the last chunk."""
        rows, self._rows, self._bytes = self._rows, [], 0
        if self._full:
            self.left_out += len(rows)
        elif rows and not self._write(rows):
            for row in rows:
                if not self._write([row]):
                    self._count_lost()

    def _count_lost(self) -> None:
        if self._full:
            self.left_out += 1
        else:
            self.refused += 1

    def _write(self, rows: list[Sequence[object]]) -> bool:
        if self._full:
            return False
        before = self._target.total_changes
        try:
            self._target.execute("BEGIN")
            self._target.executemany(self._statement, rows)
            self._target.execute("COMMIT")
        except (sqlite3.Error, OverflowError) as error:
            code = getattr(error, "sqlite_errorcode", 0) & 0xFF
            self._full = code in (sqlite3.SQLITE_FULL, sqlite3.SQLITE_IOERR) and len(rows) == 1
            if self._target.in_transaction:
                self._target.execute("ROLLBACK")
            return False
        self.inserted += self._target.total_changes - before
        return True


def drop_leftovers(target: sqlite3.Connection, dropped: dict[str, int]) -> None:
    """Delete rows that refer to lost rows, repeatedly, since that may orphan others.

    `dropped` gets the number by table. Raises sqlite3.Error.
    """
    tables = tables_of(target)
    while any([_drop_from(target, table, dropped) for table in tables]):  # noqa: C419 - each one
        pass


def _drop_from(target: sqlite3.Connection, table: str, dropped: dict[str, int]) -> int:
    count = 0
    for parent, pairs in _references(target, table):
        given = " AND ".join(f'"{table}"."{column}" IS NOT NULL' for column, _ in pairs)
        same = " AND ".join(f'parent."{there}" = "{table}"."{here}"' for here, there in pairs)
        orphaned = f'NOT EXISTS (SELECT 1 FROM "{parent}" AS parent WHERE {same})'  # noqa: S608 - names of the schema
        statement = " ".join(("DELETE FROM", f'"{table}"', "WHERE", given, "AND", orphaned))
        count += target.execute(statement).rowcount
    if count:
        dropped[table] = dropped.get(table, 0) + count
    return count


def _references(
    target: sqlite3.Connection, table: str
) -> Iterator[tuple[str, list[tuple[str, str]]]]:
    """Yield each reference of a table: the parent, and its columns with the parent's.

    Beside the declared ones these are the columns with the name of a table that has an `id`.
    """
    keys: dict[int, tuple[str, list[tuple[str, str]]]] = {}
    query = 'SELECT id, "table", "from", "to" FROM pragma_foreign_key_list(?) ORDER BY id, seq'
    for number, parent, here, there in target.execute(query, (table,)).fetchall():
        keys.setdefault(number, (parent, []))[1].append((here, there or here))
    yield from keys.values()
    query = (
        "SELECT c.name FROM pragma_table_info(?) AS c WHERE EXISTS (SELECT 1 FROM"
        " pragma_table_list AS t, pragma_table_info(t.name) AS id WHERE t.schema = 'main'"
        " AND t.name = c.name AND id.name = 'id' AND id.pk = 1 AND id.type = 'INTEGER')"
    )
    for (name,) in target.execute(query, (table,)).fetchall():
        yield name, [(name, "id")]
