"""A JSON line: one reading by name, or an object of named values.

docs/understand/serial-protocol.md, section "JSON lines"; this form has no acknowledgement.
"""

from gateway.bridges.readings.event_time import TIME_NAMES, named_time
from gateway.bridges.readings.reading import RefusedReadingError, Value
from gateway.bridges.readings.written import json_of
from gateway.bridges.serial.sample import NoReadingError, Sample

OBJECT = (b'{"', b"{'")
"""The start of an object; boards rarely print it in text."""

OWN_KEYS = ("node", "instance", "quantity", "value", "unit", *TIME_NAMES)
"""Keys of a reading by name; further keys may give its node."""


def parse_json(line: bytes) -> Sample:
    """Return a line's values; those of a list of objects are instances of one node.

    Raises NoReadingError when it is no JSON object, RefusedReadingError for an object with a
    mistake, and when a key has a type or value that is not allowed.
    """
    try:
        fields = json_of(line)
    except (ValueError, RecursionError):  # the latter from a line of brackets
        if line.lstrip()[:2] in OBJECT:
            raise RefusedReadingError("an object that is no JSON") from None
        raise NoReadingError("not JSON") from None
    if isinstance(fields, list) and any(isinstance(each, dict) for each in fields):
        return Sample({"list": fields})
    if not isinstance(fields, dict):
        raise NoReadingError(f"a JSON {type(fields).__name__}, not an object")
    node = None if fields.get("node") is None else _text("node", fields["node"])
    time = named_time(fields)
    instance = "" if fields.get("instance") in (None, "") else str(fields.pop("instance"))
    if "quantity" not in fields and "value" not in fields and fields:
        return Sample(fields, node, time, instance=instance)
    quantity = _text("quantity", fields.get("quantity"))
    unit = _text("unit", fields["unit"]) if fields.get("unit") not in (None, "") else None
    value = _value(fields.get("value"))
    others = {name: each for name, each in fields.items() if name.lower() not in OWN_KEYS}
    return Sample(others, node, time, (quantity, value, unit), instance=instance)


def _text(key: str, value: object) -> str:
    if not isinstance(value, str):
        raise RefusedReadingError(f"{key} {value!r}: only text is allowed")
    return value


def _value(value: object) -> Value:
    if not isinstance(value, (bool, int, float, str)):
        raise RefusedReadingError(f"value {value!r}: only a number, true, false or text is allowed")
    return value
