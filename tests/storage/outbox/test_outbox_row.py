"""A row keeps every field of a message through SQLite."""

from hypothesis import given, settings
from hypothesis import strategies as st

from gateway.mqtt.message import Message
from gateway.storage.engine.message_columns import fields_of
from gateway.storage.outbox.outbox_row import (
    OutboxRow,
    from_columns,
    message_of_row,
    row_of_message,
    to_columns,
)

TEXT = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\x00"))
OPTIONAL = st.none() | TEXT

ROWS = st.builds(
    OutboxRow,
    epoch=TEXT,
    stream=TEXT,
    seq=st.integers(1, 2**62),
    lane=TEXT,
    time=st.integers(0, 2**62),
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
    row = row_of_message(message, "00a1b2c3d4", "main", 3, "live")
    assert row == OutboxRow(
        "00a1b2c3d4", "main", 3, "live", "sensors/a", b"21", 2, True, 5, "c", "u", "text/plain",
        "r", b"\x01", 60, 1, (("k", "v"), ("k", "w")),
    )  # fmt: skip
    again = message_of_row(row)
    assert fields_of(again) == fields_of(message)
