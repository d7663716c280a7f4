import json

import pytest

from pipeline.records import reasons
from pipeline.records.record import FIELDS, INT64_MAX, INT64_MIN, NOTHING, read_record
from pipeline.tables.columns import RECORD, names
from tests.support.disk.landing_files import ABSENT, EPOCH, GATEWAY, TIME, reading, record
from tests.support.table import table

FAULTS: list[tuple[dict[str, object], str, str]] = [
    ({"gateway_id": ABSENT}, reasons.KEY_INCOMPLETE, "gateway_id is missing"),
    ({"gateway_id": None}, reasons.KEY_INCOMPLETE, "gateway_id is missing"),
    ({"gateway_id": ""}, reasons.KEY_INVALID, "gateway_id must be 1 to 64"),
    ({"gateway_id": "a/b"}, reasons.KEY_INVALID, "not 'a/b'"),
    ({"gateway_id": "a" * 65}, reasons.KEY_INVALID, "1 to 64"),
    ({"gateway_id": 7}, reasons.KEY_INVALID, "not 7"),
    ({"epoch": ABSENT}, reasons.KEY_INCOMPLETE, "epoch is missing"),
    ({"epoch": "00a1b2c3d"}, reasons.KEY_INVALID, "10 hex digits"),
    ({"epoch": 1234567890}, reasons.KEY_INVALID, "10 hex digits"),
    ({"stream": ABSENT}, reasons.KEY_INCOMPLETE, "stream is missing"),
    ({"stream": "a.b"}, reasons.KEY_INVALID, "stream must be"),
    ({"stream": "a" * 17}, reasons.KEY_INVALID, "1 to 16"),
    ({"seq": ABSENT}, reasons.KEY_INCOMPLETE, "seq is missing"),
    ({"seq": None}, reasons.KEY_INCOMPLETE, "seq is missing"),
    ({"seq": 0}, reasons.KEY_INVALID, "not 0"),
    ({"seq": -1}, reasons.KEY_INVALID, "not -1"),
    ({"seq": "17"}, reasons.KEY_INVALID, "not '17'"),
    ({"seq": 17.0}, reasons.KEY_INVALID, "not 17.0"),
    ({"seq": True}, reasons.KEY_INVALID, "not True"),
    ({"seq": [17]}, reasons.KEY_INVALID, "not [17]"),
    ({"seq": 2**63}, reasons.KEY_INVALID, "9223372036854775808"),
    ({"time": ABSENT}, reasons.TIME_INVALID, "time is missing"),
    ({"time": "now"}, reasons.TIME_INVALID, "not 'now'"),
    ({"time": TIME / 1}, reasons.TIME_INVALID, "time must be an integer"),
    ({"time": INT64_MIN - 1}, reasons.TIME_INVALID, "from -9223372036854775808"),
    ({"time": INT64_MAX + 1}, reasons.TIME_INVALID, "to 9223372036854775807"),
    ({"payload": ABSENT}, reasons.PAYLOAD_INVALID, "payload is missing"),
    ({"payload": "21.5"}, reasons.PAYLOAD_INVALID, "payload is not base64"),
    ({"payload": {"value": 1}}, reasons.PAYLOAD_INVALID, "must be base64 text"),
    ({"topic": ABSENT}, reasons.FIELD_INVALID, "topic is missing"),
    ({"topic": ""}, reasons.FIELD_INVALID, "topic must be text"),
    ({"received": "now"}, reasons.FIELD_INVALID, "received must be an integer"),
    ({"received": 2**53}, reasons.FIELD_INVALID, "received must be an integer"),
    ({"qos": 3}, reasons.FIELD_INVALID, "qos must be an integer from 0 to 2, not 3"),
    ({"retain": 0}, reasons.FIELD_INVALID, "retain must be true or false"),
    ({"resent": "no"}, reasons.FIELD_INVALID, "resent must be true or false"),
    ({"content_type": 5}, reasons.FIELD_INVALID, "content_type must be text"),
    ({"properties": {"site": "A"}}, reasons.FIELD_INVALID, "properties must be a list"),
    ({"correlation_data": "?"}, reasons.FIELD_INVALID, "correlation_data is not base64"),
    ({"message_expiry": -1}, reasons.FIELD_INVALID, "message_expiry must be"),
    ({"payload_format": 2}, reasons.FIELD_INVALID, "payload_format must be"),
    ({"payload_is_json": 1}, reasons.FIELD_INVALID, "payload_is_json must be"),
]
NO_RECORDS = [
    (b"", reasons.NOT_JSON),
    (b"{", reasons.NOT_JSON),
    (json.dumps(record()).encode()[:-1], reasons.NOT_JSON),
    (b'{"seq":NaN}', reasons.NOT_JSON),
    (b'{"topic":"\xff"}', reasons.NOT_JSON),
    (b"\x00\x00\x00", reasons.NOT_JSON),
    (b"[]", reasons.NOT_AN_OBJECT),
    (b'"text"', reasons.NOT_AN_OBJECT),
    (b"null", reasons.NOT_AN_OBJECT),
    (b"17", reasons.NOT_AN_OBJECT),
]


def as_line(**changes: object) -> bytes:
    fields = (record() | changes).items()
    return json.dumps({name: value for name, value in fields if value is not ABSENT}).encode()


def test_a_record_gives_all_columns() -> None:
    values, fault = read_record(as_line())
    assert fault is None
    assert dict(zip(names(RECORD), values, strict=True)) == dict.fromkeys(names(RECORD)) | {
        "gateway_id": GATEWAY,
        "epoch": EPOCH,
        "stream": "main",
        "seq": 1,
        "time": TIME,
        "received": TIME + 120,
        "topic": "sensors/n1/temperature",
        "payload": reading(),
        "qos": 1,
        "retain": False,
        "resent": False,
        "properties": [{"name": "site", "value": "A"}],
    }


@pytest.mark.uncovered
@table(("changes", "reason", "words"), FAULTS, ids=range(len(FAULTS)))
def test_a_fault_has_its_reason_and_leaves_the_right_fields(
    changes: dict[str, object], reason: str, words: str
) -> None:
    values, fault = read_record(as_line(**changes))
    assert fault is not None
    assert fault.reason == reason
    assert words in fault.detail
    (name,) = changes
    right, _ = read_record(as_line())
    expected = dict(zip(FIELDS, right, strict=True)) | {name: None}
    assert dict(zip(FIELDS, values, strict=True)) == expected


@table(("line", "reason"), NO_RECORDS)
def test_what_is_no_object_gives_no_field(line: bytes, reason: str) -> None:
    values, fault = read_record(line)
    assert values is NOTHING
    assert fault is not None
    assert fault.reason == reason


def test_the_key_is_named_before_any_other_fault() -> None:
    _, fault = read_record(as_line(qos=7, payload=None, seq=0))
    assert fault is not None
    assert fault.reason == reasons.KEY_INVALID


@pytest.mark.parametrize("seq", [1, 2**63 - 1])
@pytest.mark.parametrize("time", [INT64_MIN, 0, INT64_MAX])
def test_the_limits_belong_to_the_range(seq: int, time: int) -> None:
    assert read_record(as_line(seq=seq, time=time))[1] is None


def test_what_a_collector_may_not_know_may_be_absent() -> None:
    optional = ("received", "qos", "retain", "resent", "content_type", "properties")
    for absence in (ABSENT, None):
        _, fault = read_record(as_line(**dict.fromkeys(optional, absence)))
        assert fault is None


def test_unknown_fields_are_passed_over_whatever_they_hold() -> None:
    extra = b'{"later":{"deep":[1e999,123456789012345678901234567890]},' + as_line()[1:]
    assert read_record(extra) == read_record(as_line())


def test_of_a_name_that_stands_twice_the_last_counts() -> None:
    values, fault = read_record(b'{"seq":"x",' + as_line(seq=5)[1:])
    assert fault is None
    assert values[3] == 5


def test_fields_are_columns_in_order() -> None:
    assert list(FIELDS) == names(RECORD)
