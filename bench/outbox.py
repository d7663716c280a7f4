"""What does a large outbox cost: at the start, when it gives rows up, and on disk behind it?

    .venv/bin/python -m bench.outbox [MEBIBYTES]

Fills an outbox with MEBIBYTES (256), opens it again with and without its sums, has it give up the
oldest rows for new ones, and drains it as fast as it goes.
"""

import asyncio
import sys
import tempfile
import time
from pathlib import Path

from gateway.clock import Clock
from gateway.counters import Counters
from gateway.mqtt.message import Message
from gateway.settings.when_full import WhenFull
from gateway.storage.engine.database import FILE_NAME, Database, open_database
from gateway.storage.engine.writer import Writer
from gateway.storage.outbox.bounds import OutboxSettings, Retention, StreamSettings
from gateway.storage.outbox.outbox import Outbox
from gateway.storage.outbox.row import (
    OutboxRow,
    Outcome,
)

PAYLOAD = 1_000
"""Bytes of each message."""

TURN_ROWS = 1_000
"""Rows that share a commit."""

EVICTED = 20_000
"""Rows that are given up for others."""


async def main() -> None:
    """Fill, open again, give up, drain; print a line for each."""
    size = int(sys.argv[1] if len(sys.argv) > 1 else 256) * 1024 * 1024
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        await fill(folder, size)
        await open_again(folder)
        await give_up(folder)
        await drain(folder)


async def opened(
    folder: Path, settings: OutboxSettings | None = None
) -> tuple[Database, Writer, Outbox]:
    """Return an outbox that was not loaded yet."""
    database = await open_database(folder, Clock())
    counters = Counters()
    writer = Writer(database.writer, counters)
    return database, writer, Outbox(database, writer, counters, settings)


async def closed(database: Database, writer: Writer, outbox: Outbox) -> None:
    """Bring everything to disk."""
    await writer.close()
    await outbox.close()
    await database.close()


def message(number: int) -> OutboxRow:
    """Return a row like many."""
    accepted = Message("a/b/c", bytes(PAYLOAD), qos=1, received_at=number)
    return OutboxRow(accepted, "00a1b2c3d4", "main", number, "live")


async def commit(writer: Writer) -> None:
    """Return when what was gathered is on disk."""
    done = asyncio.Event()

    def check(_batch: int) -> None:
        if not writer.pending_rows:
            done.set()

    writer.on_committed.append(check)
    writer.hand_over()
    await done.wait()
    writer.on_committed.remove(check)


async def fill(folder: Path, size: int) -> None:
    """Fill the outbox with so many bytes."""
    database, writer, outbox = await opened(folder)
    await outbox.load()
    begun = time.perf_counter()
    while outbox.bounds.bytes < size:
        for number in range(TURN_ROWS):
            outbox.add(message(number))
        await commit(writer)
    seconds = time.perf_counter() - begun
    print(f"{outbox.rows} rows of {PAYLOAD} B in {seconds:.1f} s; {on_disk(folder)}")
    await closed(database, writer, outbox)


async def open_again(folder: Path) -> None:
    """Load with sums on disk, then without."""
    for what in ("with its sums on disk", "counting every row"):
        database, writer, outbox = await opened(folder)
        begun = time.perf_counter()
        await outbox.load()
        milliseconds = 1000 * (time.perf_counter() - begun)
        print(f"loaded {outbox.rows} rows {what}: {milliseconds:.1f} ms")
        writer.add("DELETE FROM outbox_totals", ())
        await closed(database, writer, outbox)


async def give_up(folder: Path) -> None:
    """Add rows to a full outbox, each of which makes room."""
    database, writer, outbox = await opened(folder)
    await outbox.load()
    full = outbox.rows
    await closed(database, writer, outbox)
    retention = Retention(maximum_messages=full, when_full=WhenFull.DROP_OLDEST)
    settings = OutboxSettings(retention, (StreamSettings("main"),))
    database, writer, outbox = await opened(folder, settings)
    await outbox.load()
    most, busy = 0, 0.0
    begun = time.perf_counter()
    for _ in range(EVICTED // 100):
        turn = time.perf_counter()
        for number in range(100):
            outbox.add(message(number))
        busy += time.perf_counter() - turn
        most = max(most, outbox.rows - full)
        await commit(writer)
    seconds = time.perf_counter() - begun
    print(
        f"gave up {EVICTED} rows for others, 100 to a commit: {EVICTED / seconds:.0f} a second,"
        f" {1e6 * busy / EVICTED:.1f} µs each on the loop, {most} rows beyond the bound at most"
    )
    await closed(database, writer, outbox)


async def drain(folder: Path) -> None:
    """Remove every row in order, as a fast fleet would have it."""
    database, writer, outbox = await opened(folder)
    await outbox.load()
    begun, position, log = time.perf_counter(), 0, 0
    while rows := await outbox.fetch(position, TURN_ROWS):
        position = rows[-1].id
        outbox.remove(rows, Outcome.DELIVERED)
        await commit(writer)
        log = max(log, (folder / f"{FILE_NAME}-wal").stat().st_size)
    seconds = time.perf_counter() - begun
    print(f"drained in {seconds:.1f} s; log at most {log / 2**20:.1f} MiB; {on_disk(folder)}")
    await asyncio.sleep(2)
    print(f"2 s later: {on_disk(folder)}")
    await closed(database, writer, outbox)
    print(f"closed: {on_disk(folder)}")


def on_disk(folder: Path) -> str:
    """Return the sizes of the files."""
    sizes = {path.name: path.stat().st_size for path in folder.glob(f"{FILE_NAME}*")}
    return ", ".join(f"{name} {size / 2**20:.1f} MiB" for name, size in sorted(sizes.items()))


if __name__ == "__main__":
    asyncio.run(main())
