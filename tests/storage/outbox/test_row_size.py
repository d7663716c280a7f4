"""What the outbox counts for a row is what SQLite needs for it, and hardly more."""

import sqlite3
from pathlib import Path

import pytest

from gateway.storage.engine.database import FILE_NAME
from gateway.storage.outbox.outbox_row import OutboxRow
from gateway.storage.outbox.row_size import row_size
from gateway.storage.outbox.streams.retention import OutboxSettings, StreamSettings
from tests.support.disk.storage import open_store, outbox_row

BYTES = 2 * 1024 * 1024
"""Of rows: so many that the last page of each table is none of the result."""


def _on_disk(folder: Path) -> int:
    """The bytes of all pages of the table and its indexes."""
    with sqlite3.connect(folder / FILE_NAME) as connection:
        names = "('outbox', 'outbox_stream', 'outbox_expiry')"
        (size,) = connection.execute(
            f"SELECT sum(pgsize) FROM dbstat WHERE name IN {names}"
        ).fetchone()
    connection.close()
    return int(size)


def _full_row(seq: int) -> OutboxRow:
    return outbox_row(
        seq, topic="sensörs/äöü", content_type="text/plain", response_topic="answer/to",
        correlation_data=bytes(9), client_id="sensor-1", username="sönsor",
        user_properties=(("site", "A"), ("straße", "B")), payload=bytes(64), message_expiry=3600,
    )  # fmt: skip


ROWS = [(size, outbox_row(1, payload=bytes(size))) for size in (
    0, 20, 200, 900, 1_300, 1_900, 2_500, 3_900, 4_200, 6_000, 8_050, 50_000,
)]  # fmt: skip


@pytest.mark.uncovered
@pytest.mark.parametrize(
    "row", [row for _, row in ROWS] + [_full_row(1)], ids=[str(n) for n, _ in ROWS] + ["full"]
)
@pytest.mark.parametrize("streams", [("main",), ("main", "alarms")])
async def test_the_file_holds_what_is_counted(
    tmp_path: Path, row: OutboxRow, streams: tuple[str, ...]
) -> None:
    settings = OutboxSettings(streams=tuple(map(StreamSettings, streams)))
    store = await open_store(tmp_path, settings=settings)
    count = BYTES // row_size(row)
    for seq in range(count):
        row.seq, row.stream, row.left = seq, streams[seq % len(streams)], False
        store.outbox.add(row)
    counted = store.outbox.bytes
    await store.close()
    assert 0.65 * counted <= _on_disk(tmp_path) <= counted
