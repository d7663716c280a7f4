import json
from typing import Any

import pytest

from gateway.mqtt.message import STRING_CODE_POINTS, Message
from gateway.where.compile import compile_where
from tests.support.table import table

MESSAGE = Message(
    "a/b",
    b'{"k":{"x":[1,{"y":"z"}]},"only":"p","both":"payload","n":null,"5":6}',
    2,
    True,
    client_id="c",
    username="u",
    received_at=1_700_000_000_123,
    content_type="text/plain",
    response_topic="r/t",
    correlation_data="温".encode(),
    message_expiry=60,
    payload_format=1,
    user_properties=(("both", "user"), ("twice", "1"), ("twice", "2"), ("topic", "own")),
)


@table("payload", [b"", b"{", b"\x80", b"5", b'"x"', b"null", b"[]"])
@table("field", ["x", "payload.x", "payload[0]", "payload.x.y", "$user.x"])
def test_nothing_is_found_where_nothing_is(field: str, payload: bytes) -> None:
    assert compile_where(f"{field} IS NULL").evaluate(Message("t", payload)) is True


ABSENT = ["clientid", "username", "content_type", "response_topic", "correlation_data"]


@table("field", [*ABSENT, "$payload_format", "$message_expiry", "$received_at"])
def test_an_absent_field_is_null(field: str) -> None:
    assert compile_where(f"{field} IS NULL").evaluate(Message("t")) is True


@pytest.mark.parametrize("field", ["payload.s", "payload.l[0]", "s"])
@pytest.mark.parametrize("excess", [0, 1])
def test_a_text_longer_than_a_string_is_null(field: str, excess: int) -> None:
    text = "x" * (STRING_CODE_POINTS + excess)
    value: dict[str, Any] = {"s": text, "l": [text]}
    message = Message("t", json.dumps(value).encode())
    assert compile_where(f"{field} IS NULL").evaluate(message) is bool(excess)
