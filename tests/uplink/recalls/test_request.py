"""What a request may say, and which messages it means."""

import json
import re

import pytest

from gateway.mqtt.message import Message
from gateway.storage.history.recall import EVER, Window
from gateway.storage.history.row import HistoryRow, Numbered
from gateway.uplink.recalls.request import MAX_REQUEST_BYTES, RecallError, parse_request
from tests.support.table import table

MISTAKES = [
    (b"", "not JSON"),
    (b"[" * 10_000, "not JSON"),
    (b"\xff", "not JSON"),
    (b"[]", "a JSON object"),
    (b'{"streams":"main"}', "unknown key 'streams'"),
    (b'{"stream":7}', "stream is a text"),
    (b'{"from":-1}', "from is a whole number"),
    (b'{"to":1.5}', "to is a whole number"),
    (b'{"from":true}', "from is a whole number"),
    (b'{"first":1}', "numbers of one epoch"),
    (b'{"last":1,"stream":"main"}', "numbers of one epoch"),
    (b'{"topic":"a/#/b"}', "topic 'a/#/b'"),
    (b'{"where":"payload.value >"}', "where: position 15"),
    (b'{"where":"CHANGED(payload.value)"}', "where: position"),
    (b'"' + bytes(MAX_REQUEST_BYTES) + b'"', "at most"),
]


@table(("payload", "told"), MISTAKES)
def test_a_mistake_is_named(payload: bytes, told: str) -> None:
    with pytest.raises(RecallError, match=re.escape(told)):
        parse_request(payload)


def test_without_a_word_all_of_main_is_meant() -> None:
    request = parse_request(b"{}")
    assert (request.stream, request.window) == ("main", Window(0, EVER, None))
    assert (request.first, request.last, request.topic, request.where) == (1, EVER, None, None)


ROW = HistoryRow(
    9,
    1,
    "00a1b2c3d4",
    Message("sensors/n1/t", b'{"value":21}', 1, received_at=5),
    (Numbered("main", 7, ()), Numbered("slow", 3, ())),
)

REQUESTS = [
    ({}, 7),
    ({"stream": "slow"}, 3),
    ({"stream": "other"}, None),
    ({"epoch": "00a1b2c3d4", "first": 7, "last": 7}, 7),
    ({"epoch": "00a1b2c3d4", "first": 8}, None),
    ({"epoch": "00a1b2c3d4", "last": 6}, None),
    ({"topic": "sensors/+/t"}, 7),
    ({"topic": "sensors/+/h"}, None),
    ({"where": "payload.value > 20"}, 7),
    ({"where": "payload.value > 21"}, None),
    ({"where": "payload.other > 21"}, None),
]


@table(("request_", "number"), REQUESTS)
def test_a_message_goes_up_under_its_number_in_the_stream(
    request_: dict[str, object], number: int | None
) -> None:
    assert parse_request(json.dumps(request_).encode()).number_of(ROW) == number
