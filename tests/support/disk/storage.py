"""A store on real SQLite files, and what a crash would leave of it."""

import asyncio
import shutil
import sqlite3
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from gateway.clock import Clock
from gateway.counters import Counters
from gateway.mqtt.message import Message
from gateway.settings.when_full import WhenFull
from gateway.storage.engine.database import FILE_NAME, Database, open_database
from gateway.storage.engine.pending_batch import PendingBatch
from gateway.storage.engine.writer import Writer
from gateway.storage.outbox.bounds import OutboxSettings, Retention
from gateway.storage.outbox.outbox import Outbox
from gateway.storage.outbox.rejected import Rejected
from gateway.storage.outbox.row import OutboxRow
from gateway.storage.state.node_frames import NodeFrames


@dataclass(slots=True)
class Store:
    """Everything of gateway.storage, wired as the application wires it."""

    database: Database
    counters: Counters
    writer: Writer
    outbox: Outbox
    rejected: Rejected
    node_frames: NodeFrames
    alarms: list[str]

    async def end_turn(self) -> None:
        """End the turn, and let a commit that is due begin."""
        self.writer.hand_over()
        await asyncio.sleep(0)

    async def settle(self) -> None:
        """End the turn and wait until all that was gathered is on disk."""
        mark = self.writer.batch
        self.writer.hand_over()
        await until(lambda: not self.writer.pending_rows or self.writer.committed >= mark)

    async def close(self) -> None:
        await self.writer.close()
        await self.outbox.close()
        await self.database.close()


async def open_store(
    folder: Path,
    *,
    durable: bool = True,
    settings: OutboxSettings | None = None,
    uplinks: Sequence[str] = (),
) -> Store:
    database = await open_database(folder, Clock())
    counters = Counters()
    alarms: list[str] = []
    writer = Writer(database.writer, counters, durable=durable, alarm=alarms.append)
    outbox = Outbox(database, writer, counters, settings, PendingBatch(writer), uplinks)
    rejected = Rejected(database, writer, counters)
    node_frames = NodeFrames(database, writer)
    await outbox.load()
    await rejected.load()
    await node_frames.load()
    return Store(database, counters, writer, outbox, rejected, node_frames, alarms)


def refuse_writes(monkeypatch: pytest.MonkeyPatch, store: Store) -> None:
    """Let the disk take no batch any more."""

    def refuse(batch: object) -> None:
        raise sqlite3.OperationalError("disk I/O error")

    monkeypatch.setattr(store.database.writer, "commit", refuse)


async def meta_names(store: Store) -> list[str]:
    """Return the names in the table `meta`, which most tests of the writer write to."""
    statement = "SELECT name FROM meta ORDER BY name"
    rows = await store.database.reader.query(statement, (), lambda cursor: cursor.fetchall())
    return [name for (name,) in rows]


def crash_image(folder: Path, to: Path) -> Path:
    """Copy what a kill at this moment would leave on disk: the file and its WAL.

    A snapshot is held meanwhile, so that no checkpoint moves pages between the two copies.
    """
    to.mkdir(parents=True)
    connection = sqlite3.connect(folder / FILE_NAME, isolation_level=None)
    try:
        connection.execute("BEGIN")
        connection.execute("SELECT count(*) FROM meta").fetchone()
        for name in (FILE_NAME, FILE_NAME + "-wal"):
            if (folder / name).exists():
                shutil.copyfile(folder / name, to / name)
    finally:
        connection.close()
    return to


def bounded(when_full: str = "reject", **bounds: int) -> OutboxSettings:
    """Return settings that bound the whole outbox, by `maximum_messages` for example."""
    return OutboxSettings(Retention(when_full=WhenFull(when_full), **bounds))


def outbox_row(seq: int, stream: str = "main", **fields: Any) -> OutboxRow:
    """Return a row as a rule would make it; `fields` are the message's, or the row's own."""
    values: dict[str, Any] = {
        "epoch": "00a1b2c3d4",
        "lane": "live",
        "time": 1_763_740_000_000 + seq,
        "topic": "sensors/n1/temperature",
        "payload": b'{"value":%d}' % seq,
        "qos": 1,
        **fields,
    }
    epoch, lane, time = map(values.pop, ("epoch", "lane", "time"))
    own = {name: values.pop(name) for name in ("id", "size", "uplinks") if name in values}
    row = OutboxRow(Message(received_at=time, **values), epoch, stream, seq, lane)
    for name, value in own.items():
        setattr(row, name, value)
    return row


async def until(condition: Callable[[], bool], seconds: float = 60) -> None:
    """Return once `condition` holds; TimeoutError when it does not within `seconds`."""
    pause = 0.001
    async with asyncio.timeout(seconds):
        while not condition():
            await asyncio.sleep(pause)
            pause = min(pause * 1.2, 0.01)  # to look all the time would take others' time
