"""A database in memory, for a gateway whose disk takes nothing."""

import sqlite3
from pathlib import Path

from gateway.storage.connection import Connection
from gateway.storage.migrations.migrate import migrate
from gateway.storage.salvage.salvage import Salvage, salvage
from gateway.storage.salvage.wal import PAGE_BYTES

MEMORY_BYTES = 64 * 1024 * 1024
"""Size at which the database takes no more, and publishers are refused; a Pi Zero has 512 MB."""

COPIED_BYTES = {"history": 0, "outbox": MEMORY_BYTES // 4}
"""Bytes that these tables take over at most from the disk; the rest waits there for a restart."""


async def open_in_memory(path: Path) -> tuple[Connection, Salvage | None]:
    """Return a database with what can be read of the one at `path`, and how much that is.

    One connection serves as writer and reader: each transaction and each query is a single
    hop into its thread, so that none sees half of another.
    """
    results: list[Salvage] = []

    def connect() -> sqlite3.Connection:
        connection = sqlite3.connect(":memory:", isolation_level=None)
        connection.execute("PRAGMA auto_vacuum = INCREMENTAL")
        migrate(connection)
        connection.execute(f"PRAGMA max_page_count = {MEMORY_BYTES // PAGE_BYTES}")
        if path.exists():
            results.append(salvage(path, connection, COPIED_BYTES))
        connection.execute("PRAGMA foreign_keys = ON")
        return connection

    connection = Connection(connect)
    await connection
    return connection, results[0] if results else None
