"""A row keeps every field through SQLite, and is counted as SQLite needs it, and hardly more."""

import sqlite3
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gateway.mqtt.message import Message
from gateway.storage.engine.database import FILE_NAME
from gateway.storage.engine.message_columns import message_values
from gateway.storage.outbox.bounds import OutboxSettings, StreamSettings
from gateway.storage.outbox.row import OutboxRow, from_columns, row_size, to_columns
from tests.support.disk.storage import open_store, outbox_row

TEXT = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\x00"))
OPTIONAL = st.none() | TEXT

MESSAGES = st.builds(
    Message,
    received_at=st.integers(0, 2**62),
    topic=TEXT,
    payload=st.binary(),
    qos=st.integers(0, 2),
    retain=st.booleans(),
    content_type=OPTIONAL,
    response_topic=OPTIONAL,
    correlation_data=st.none() | st.binary(),
    message_expiry=st.none() | st.integers(0, 2**32 - 1),
    payload_format=st.none() | st.integers(0, 1),
    user_properties=st.lists(st.tuples(TEXT, TEXT)).map(tuple),
    client_id=OPTIONAL,
    username=OPTIONAL,
)

ROWS = st.builds(
    OutboxRow, message=MESSAGES, epoch=TEXT, stream=TEXT, seq=st.integers(1, 2**62), lane=TEXT
)


@given(ROWS)
@settings(deadline=None)
def test_the_columns_give_the_row_again(row: OutboxRow) -> None:
    assert from_columns(to_columns(row)) == row


def test_a_row_holds_all_of_the_message() -> None:
    message = Message(
        "sensors/a",
        b"21",
        2,
        True,
        client_id="c",
        username="u",
        received_at=5,
        content_type="text/plain",
        response_topic="r",
        correlation_data=b"\x01",
        message_expiry=60,
        payload_format=1,
        user_properties=(("k", "v"), ("k", "w")),
    )
    columns = to_columns(OutboxRow(message, "00a1b2c3d4", "main", 3, "live"))
    assert columns == (
        0, 0, "00a1b2c3d4", "main", 3, "live", "sensors/a", b"21", 2, True, 5, "c", "u",
        "text/plain", "r", b"\x01", 60, 1, '[["k","v"],["k","w"]]',
    )  # fmt: skip
    again = from_columns(columns).message
    assert message_values(again) == message_values(message)


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


SIZED = [(size, outbox_row(1, payload=bytes(size))) for size in (
    0, 20, 200, 900, 1_300, 1_900, 2_500, 3_900, 4_200, 6_000, 8_050, 50_000,
)]  # fmt: skip


@pytest.mark.uncovered
@pytest.mark.parametrize(
    "row", [row for _, row in SIZED] + [_full_row(1)], ids=[str(n) for n, _ in SIZED] + ["full"]
)
@pytest.mark.parametrize("streams", [("main",), ("main", "alarms")])
async def test_the_file_holds_what_is_counted(
    tmp_path: Path, row: OutboxRow, streams: tuple[str, ...]
) -> None:
    settings = OutboxSettings(streams=tuple(map(StreamSettings, streams)))
    store = await open_store(tmp_path, settings=settings)
    count = BYTES // row_size(row)
    for seq in range(count):
        row.seq, row.stream, row.deleted = seq, streams[seq % len(streams)], False
        store.outbox.add(row)
    counted = store.outbox.bounds.bytes
    await store.close()
    assert 0.65 * counted <= _on_disk(tmp_path) <= counted
