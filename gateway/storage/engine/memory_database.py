"""A database in memory, for a gateway whose disk accepts no writes."""

import logging
import sqlite3
from pathlib import Path

from gateway.salvage.form import PAGE_BYTES
from gateway.salvage.salvage import Salvage, salvage
from gateway.storage.engine.connection import Connection
from gateway.storage.engine.migrations.migrate import earlier_statements, migrate

logger = logging.getLogger(__name__)

MEMORY_BYTES = 64 * 1024 * 1024
"""Bytes that may be added before publishers are refused; a Pi Zero has 512 MB."""

MAXIMUM_COPIED = 64 * 1024 * 1024
"""The most bytes that are copied from the disk; the rest waits there for a restart."""

COPIED_BYTES = {"history": 0, "outbox": 16 * 1024 * 1024}
"""The share of these for the pages of these tables."""


async def open_in_memory(path: Path) -> tuple[Connection, Salvage | None]:
    """Return a database with what can be read of the one at `path`, and how much that is.

    One connection serves as writer and reader: each transaction and each query is a single call in
    its thread, so that none sees half of another.
    """
    results: list[Salvage] = []

    def connect() -> sqlite3.Connection:
        connection = sqlite3.connect(":memory:", isolation_level=None)
        connection.execute(f"PRAGMA page_size = {PAGE_BYTES}")
        connection.execute("PRAGMA auto_vacuum = INCREMENTAL")
        migrate(connection)
        connection.execute(f"PRAGMA max_page_count = {MAXIMUM_COPIED // PAGE_BYTES}")
        if path.exists():
            try:
                results.append(salvage(path, connection, COPIED_BYTES, earlier_statements()))
            except OSError as error:
                logger.critical("%s cannot be opened, and waits for a restart: %s", path, error)
        (page_count,) = connection.execute("PRAGMA page_count").fetchone()
        connection.execute(f"PRAGMA max_page_count = {page_count + MEMORY_BYTES // PAGE_BYTES}")
        connection.execute("PRAGMA foreign_keys = ON")
        return connection

    connection = Connection(connect)
    await connection.open()
    return connection, results[0] if results else None
