"""Damaged databases, what salvage makes of them, and what it should have."""

import random
from pathlib import Path

from gateway.salvage.salvage import Salvage, salvage
from tests.support.disk.damaged_database import PAGE, Row, all_rows, fresh

ROWS = 900
"""How many messages the databases hold that are damaged."""


def salvaged(
    folder: Path, database: bytes, log: bytes = b""
) -> tuple[Salvage, dict[str, set[Row]]]:
    """Salvage files with these contents; return what came of it and the new rows."""
    path = folder / "damaged.db"
    path.write_bytes(database)
    path.with_name("damaged.db-wal").write_bytes(log)
    new = folder / "new.db"
    new.unlink(missing_ok=True)
    connection = fresh(new)
    try:
        result = salvage(path, connection)
        assert connection.execute("PRAGMA integrity_check").fetchone() == ("ok",)
        return result, all_rows(connection)
    finally:
        connection.close()


def damage(content: bytes, number: int, how: str, seed: int) -> bytes:
    """Return the database with one page damaged."""
    source = random.Random(seed)
    data = bytearray(content)
    start = (number - 1) * PAGE
    if how == "zeros":
        data[start : start + PAGE] = bytes(PAGE)
    elif how == "noise":
        data[start : start + PAGE] = source.randbytes(PAGE)
    elif how == "other page":
        other = source.randrange(len(data) // PAGE) * PAGE
        data[start : start + PAGE] = data[other : other + PAGE]
    else:
        for _ in range(8):
            data[start + source.randrange(PAGE)] = source.randrange(256)
    return bytes(data)


def missing(expected: dict[str, set[Row]], found: dict[str, set[Row]]) -> dict[str, set[Row]]:
    """Return the rows of each table that were expected and not found."""
    return {
        name: rows - found[name]
        for name, rows in expected.items()
        if rows - found[name] and name not in ("rules", "meta")  # both are brought up to date
    }
