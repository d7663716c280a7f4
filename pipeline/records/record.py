"""One line of a landing file: a record by the contract, or the reason why it is none.

The rules are those of docs/understand/schemas/landing-record.schema.json, read without
leniency: a number in quotes, a 17.0 or a true is not an integer.
"""

from operator import itemgetter
from typing import NamedTuple

from pipeline.records import reasons
from pipeline.records.fast_record import read_fast
from pipeline.records.field_checks import (
    Check,
    FieldError,
    base64,
    boolean,
    filled_text,
    integer,
    matching,
    properties,
    text,
)
from pipeline.records.strict_json import NotJsonError, parse
from pipeline.tables.columns import RECORD, names

INT64_MIN = -(2**63)
INT64_MAX = 2**63 - 1
EXACT_MAX = 2**53 - 1
"""A received time up to here can have an event time subtracted without overflow."""
UINT32_MAX = 2**32 - 1

Values = tuple[object, ...]
"""A record's fields in the order of columns.RECORD; what is absent or unreadable is None."""


class Fault(NamedTuple):
    """Why a line is not a record: one of pipeline.reasons, and what was found."""

    reason: str
    detail: str


class Field(NamedTuple):
    """How a field is read, and the reasons when it is wrong or absent (None: it may be)."""

    check: Check
    wrong: str = reasons.FIELD_INVALID
    absent: str | None = None


def read_record(line: bytes) -> tuple[Values, Fault | None]:
    """Return the fields of the line and its first fault, None for a record.

    With a fault the fields that are right in themselves are returned all the same.
    """
    values = read_fast(line)
    return (values, None) if values is not None else read_slowly(line)


def read_slowly(line: bytes) -> tuple[Values, Fault | None]:
    """Return what `read_record` does, by the rules themselves."""
    try:
        value = parse(line)
    except NotJsonError as error:
        return NOTHING, Fault(reasons.NOT_JSON, str(error))
    if not isinstance(value, dict):
        return NOTHING, Fault(reasons.NOT_AN_OBJECT, "the line is JSON, but not an object")
    return read_fields(value)


def read_fields(record: dict[str, object]) -> tuple[Values, Fault | None]:
    """Return what `read_record` does, of an object that was parsed already."""
    get = record.get
    try:
        values = [None if (value := get(name)) is None else check(value) for name, check in _CHECKS]
    except FieldError:
        return _read_faulty(record)
    if None in _required(values):
        return _read_faulty(record)
    return tuple(values), None


def _read_faulty(record: dict[str, object]) -> tuple[Values, Fault | None]:
    """Return the fields that are right in themselves, and the first fault."""
    values: list[object] = []
    fault: Fault | None = None
    for name, field in FIELDS.items():
        value = record.get(name)
        try:
            if value is None and field.absent is not None:
                fault = fault or Fault(field.absent, f"{name} is missing")
            values.append(None if value is None else field.check(value))
        except FieldError as error:
            values.append(None)
            fault = fault or Fault(field.wrong, f"{name} {error}")
    return tuple(values), fault


def _key(check: Check) -> Field:
    return Field(check, wrong=reasons.KEY_INVALID, absent=reasons.KEY_INCOMPLETE)


FIELDS: dict[str, Field] = {
    "gateway_id": _key(
        matching("[A-Za-z0-9][A-Za-z0-9_-]{0,63}", "1 to 64 letters, digits, _ or -")
    ),
    "epoch": _key(matching("[0-9a-fA-F]{10}", "10 hex digits")),
    "stream": _key(matching("[A-Za-z0-9_-]{1,16}", "1 to 16 letters, digits, _ or -")),
    "seq": _key(integer(1, INT64_MAX)),
    "time": Field(integer(INT64_MIN, INT64_MAX), reasons.TIME_INVALID, reasons.TIME_INVALID),
    "received": Field(integer(0, EXACT_MAX)),
    "topic": Field(filled_text, absent=reasons.FIELD_INVALID),
    "payload": Field(base64, reasons.PAYLOAD_INVALID, reasons.PAYLOAD_INVALID),
    "qos": Field(integer(0, 2)),
    "retain": Field(boolean),
    "resent": Field(boolean),
    "content_type": Field(text),
    "properties": Field(properties),
    "clientid": Field(text),
    "username": Field(text),
    "response_topic": Field(text),
    "correlation_data": Field(base64),
    "message_expiry": Field(integer(0, UINT32_MAX)),
    "payload_format": Field(integer(0, 1)),
    "payload_is_json": Field(boolean),
}
NOTHING: Values = (None,) * len(names(RECORD))
_CHECKS = tuple((name, field.check) for name, field in FIELDS.items())
_required = itemgetter(
    *(place for place, field in enumerate(FIELDS.values()) if field.absent is not None)
)
