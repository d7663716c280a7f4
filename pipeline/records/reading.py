"""A payload as a reading: what silver says of a message beyond its key."""

import math
from collections.abc import Mapping
from functools import lru_cache
from typing import NamedTuple

from pipeline.records.fast_reading import Body, read_body
from pipeline.records.record import EXACT_MAX, INT64_MAX, INT64_MIN
from pipeline.records.strict_json import NotJsonError, parse

TOPICS_REMEMBERED = 4_096
"""Topics whose series is kept at hand; beyond it the one longest unused goes."""
COMMAND = "command"
NO_INSTANCES = ("set", "answer")
"""Levels of commands and their answers (docs/use/readings.md): what is there is no reading."""

Series = tuple[str, str, str | None]
"""A node, a quantity, and which one of several it is; None for one that is alone."""


class Reading(NamedTuple):
    """The decoded columns of a silver row; `reading_time` is in ms since 1970, by its clock."""

    reading_time: int | None = None
    node: str | None = None
    quantity: str | None = None
    value: float | None = None
    value_text: str | None = None
    unit: str | None = None
    quality: str | None = None
    decode_error: str | None = None
    value_exact: str | None = None
    """The digits of an integer that a double does not hold."""
    instance: str | None = None


def decode(topic: str, payload: bytes) -> Reading:
    """Return the reading in a message, or its text, or the reason why it has neither.

    A reading is a JSON object with a `value` on the topic of a series. Whatever was wrong with it
    is in `decode_error`, and what was right is kept.
    """
    series = series_of(topic)
    if series is not None:
        plain = read_body(payload)
        if plain is not None:
            return _plain_reading(series, plain)
    return decode_slowly(topic, payload)


def decode_slowly(topic: str, payload: bytes) -> Reading:
    """Return what `decode` does, by the rules themselves."""
    series = series_of(topic)
    if series is not None:
        body, fault = _object(payload)
        if body is not None and "value" in body:
            return reading_of(series, body, fault)
    try:
        return Reading(value_text=payload.decode("utf-8"))
    except UnicodeDecodeError as error:
        return Reading(decode_error=f"not UTF-8 at byte {error.start + 1}")


@lru_cache(TOPICS_REMEMBERED)
def series_of(topic: str) -> Series | None:
    """Return the series of `sensors/<node>/<quantity>[/<instance>]`, None for another topic."""
    match topic.split("/"):
        case ["sensors", node, quantity] if node and quantity:
            return node, quantity, None
        case ["sensors", node, quantity, instance] if node and quantity and instance:
            return None if _is_of_commands(quantity, instance) else (node, quantity, instance)
    return None


def _is_of_commands(quantity: str, instance: str) -> bool:
    return quantity == COMMAND or instance in NO_INSTANCES


def _object(payload: bytes) -> tuple[dict[str, object] | None, str]:
    """Return the object that a payload is, and what is wrong with it as JSON.

    Python's own encoder writes NaN and Infinity, which JSON does not have.
    """
    fault = ""
    try:
        body = parse(payload)
    except NotJsonError as error:
        fault = str(error)
        try:
            body = parse(payload, constants=True)
        except NotJsonError:
            return None, fault
    return (body if isinstance(body, dict) else None), fault


def _plain_reading(series: Series, body: Body) -> Reading:
    node, quantity, instance = series
    value = body.value
    if isinstance(value, bool | str):
        number, text, exact = None, _value(value, [])[1], None
    else:
        number, text = float(value), None
        exact = _exact(value, number)
    return Reading(
        body.time, node, quantity, number, text, body.unit, body.quality, None, exact, instance
    )


def reading_of(series: Series, body: Mapping[str, object], fault: str = "") -> Reading:
    """Return the reading of a series that an object with a `value` is; `fault` is wrong with it."""
    node, quantity, instance = series
    errors = [fault] if fault else []
    value, value_text = _value(body["value"], errors)
    exact = None if value is None else _exact(body["value"], value)
    return Reading(
        reading_time=_time(body.get("time"), errors),
        node=node,
        quantity=quantity,
        value=value,
        value_text=value_text,
        unit=_text("unit", body.get("unit"), errors),
        quality=_text("quality", body.get("quality"), errors),
        decode_error="; ".join(errors) or None,
        value_exact=exact,
        instance=instance,
    )


def _value(value: object, errors: list[str]) -> tuple[float | None, str | None]:
    match value:
        case bool():
            return None, "true" if value else "false"
        case str():
            return None, value
        case int() | float():
            return _number(value, errors), None
    errors.append("value is null" if value is None else "value is neither number, text nor boolean")
    return None, None


def _number(value: float, errors: list[str]) -> float | None:
    try:
        number = float(value)
    except OverflowError:  # an integer of more than 308 digits
        number = math.inf
    if math.isfinite(number):
        return number
    errors.append(
        "value is no number" if math.isnan(number) else "value is beyond a double's range"
    )
    return None


def _exact(value: object, number: float) -> str | None:
    """Return the digits of an integer whose double is another number."""
    if type(value) is int and abs(value) > EXACT_MAX and int(number) != value:
        return str(value)
    return None


def _time(own: object, errors: list[str]) -> int | None:
    if own is None:
        return None
    if type(own) is int and INT64_MIN <= own <= INT64_MAX:
        return own
    errors.append("time is not an integer of milliseconds")
    return None


def _text(name: str, value: object, errors: list[str]) -> str | None:
    if value is None or isinstance(value, str):
        return value
    errors.append(f"{name} is not text")
    return None
