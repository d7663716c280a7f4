"""A reading's names, values and times are checked once, and its JSON has one form."""

import pytest

from gateway.bridges.readings.reading import (
    NAME_MAX,
    TIME_MAX,
    UNIT_MAX,
    Reading,
    RefusedReadingError,
)
from tests.support.table import table

TIME = 1_763_740_000_000

FORMS = [
    (
        Reading("n1", "temperature", 21.5, "°C", 1763740000000),
        '{"value":21.5,"unit":"°C","time":1763740000000}',
    ),
    (Reading("n1", "contact", True, None, 1), '{"value":true,"time":1}'),
    (Reading("n1", "count", 3, None, 0), '{"value":3,"time":0}'),
    (Reading("n1", "state", 'a"\n', None, 0), '{"value":"a\\"\\n","time":0}'),
    (
        Reading("n1", "speed", -0.25, "m/s", TIME_MAX),
        '{"value":-0.25,"unit":"m/s","time":253402300799999}',
    ),
]
FORBIDDEN = ["/", "+", "#", "\0", "\n", "\x1b", "\x7f", "\x85", "\ud800", "\ufffe"]


@pytest.mark.parametrize(("reading", "payload"), FORMS)
def test_the_one_json_form(reading: Reading, payload: str) -> None:
    assert reading.payload.decode() == payload


@table(
    "name",
    [
        "",
        "x" * (NAME_MAX + 1),
        "é" * (NAME_MAX // 2 + 1),
        "\ufdd0",
        "\U0001ffff",
        *FORBIDDEN,
        *(f"a{character}b" for character in FORBIDDEN),
    ],
)
@table("field", ["node", "quantity"])
def test_names_that_are_refused(name: str, field: str) -> None:
    names = {"node": "n1", "quantity": "temperature", field: name}
    with pytest.raises(RefusedReadingError, match=field):
        Reading(names["node"], names["quantity"], 1, None, TIME)


@pytest.mark.parametrize("name", ["x" * NAME_MAX, "é" * (NAME_MAX // 2), "$SYS", " ", "a.b-c_d"])
def test_names_that_are_allowed(name: str) -> None:
    assert Reading(name, name, 1, None, TIME).topic == f"sensors/{name}/{name}"


@pytest.mark.parametrize("unit", ["", "°\n", "x" * (UNIT_MAX + 1), "\udfff"])
def test_units_that_are_refused(unit: str) -> None:
    with pytest.raises(RefusedReadingError, match="unit"):
        Reading("n1", "temperature", 1, unit, TIME)


@pytest.mark.parametrize("value", [float("nan"), float("inf"), float("-inf"), "\ud800"])
def test_values_that_are_refused(value: float | str) -> None:
    with pytest.raises(RefusedReadingError, match="value"):
        Reading("n1", "temperature", value, None, TIME)


@pytest.mark.parametrize("time", [-1, TIME_MAX + 1])
def test_times_that_are_refused(time: int) -> None:
    with pytest.raises(RefusedReadingError, match=f"time {time}"):
        Reading("n1", "temperature", 1, None, time)


@pytest.mark.parametrize(
    ("reading", "text"),
    [
        (Reading("n1", "temperature", 21.5, "°C", TIME), "sensors/n1/temperature 21.5 °C"),
        (Reading("n1", "contact", False, None, TIME), "sensors/n1/contact false"),
    ],
)
def test_how_a_log_line_shows_it(reading: Reading, text: str) -> None:
    assert str(reading) == text
