"""Rows whose rows in other tables are lost: nothing can be done with them."""

import sqlite3
from collections.abc import Iterator

from gateway.salvage.layouts import tables_of


def drop_leftovers(target: sqlite3.Connection, dropped: dict[str, int]) -> None:
    """Delete rows that refer to rows that are lost, as often as that leaves others behind.

    `dropped` gets how many by table. Raises sqlite3.Error.
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

    Beside the declared ones these are the columns that have the name of a table with an `id`.
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
