"""The landing record, field by field."""

import json

import pytest

from gateway.uplink.landing.record import file_name, landing_line
from tests.support.disk.storage import outbox_row
from tests.support.fleet.uplinks import uplink_settings


def test_the_record_of_a_plain_message() -> None:
    row = outbox_row(
        17,
        topic="sensors/n1/temperature",
        payload=b'{"value":21}',
        time=1_763_740_000_000,
        user_properties=(("site", "A"),),
    )
    settings = uplink_settings()
    assert landing_line(row, settings, received=1_763_740_000_120) == (
        b'{"gateway_id":"barn","epoch":"00a1b2c3d4","stream":"main","seq":17,'
        b'"time":1763740000000,"received":1763740000120,"topic":"sensors/n1/temperature",'
        b'"payload":"eyJ2YWx1ZSI6MjF9","qos":1,"retain":false,"resent":false,'
        b'"content_type":null,"properties":[["site","A"]],"payload_is_json":true}\n'
    )


def test_optional_fields_stand_where_the_message_has_them() -> None:
    row = outbox_row(
        1,
        qos=2,
        retain=True,
        content_type="text/plain",
        response_topic="answer",
        correlation_data=b"\xff\x00",
        message_expiry=60,
        payload_format=0,
        client_id="c",
        username="u",
    )
    settings = uplink_settings(identity=True)
    record = json.loads(landing_line(row, settings, resent=True, received=row.time + 10_000))
    assert (record["qos"], record["retain"], record["resent"]) == (2, True, True)
    assert list(record.items())[11:] == [
        ("content_type", "text/plain"),
        ("properties", []),
        ("clientid", "c"),
        ("username", "u"),
        ("response_topic", "answer"),
        ("correlation_data", "/wA="),
        ("message_expiry", 50),
        ("payload_format", 0),
        ("payload_is_json", True),
    ]


@pytest.mark.parametrize(
    ("payload", "is_json"), [(b"21", True), (b"", False), (b"NaN", False), (b'"\xff"', False)]
)
def test_it_says_whether_the_payload_is_json(payload: bytes, is_json: bool) -> None:
    row = outbox_row(1, payload=payload)
    record = json.loads(landing_line(row, uplink_settings(), received=0))
    assert record["payload_is_json"] is is_json


def test_a_line_has_no_line_end_inside_whatever_the_message_holds() -> None:
    row = outbox_row(1, topic="a\u2028b\u0085c", user_properties=(("\r", "\n"),))
    line = landing_line(row, uplink_settings(), received=0)
    assert len(line.decode().splitlines()) == 1
    assert json.loads(line)["topic"] == row.message.topic
    assert json.loads(line)["properties"] == [["\r", "\n"]]


def test_the_file_name_says_what_is_in_it() -> None:
    assert file_name("00a1b2c3d4", "slow_1", 3, 9, 3) == "00a1b2c3d4.slow_1.3-9.3.jsonl"
