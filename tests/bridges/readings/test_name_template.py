"""Names that are made of a message's fields."""

import pytest

from gateway.bridges.readings.name_template import NameTemplate, name_template
from tests.support.table import table

FIELDS: dict[str, object] = {
    "model": "Acurite-Tower",
    "id": 1234,
    "name": " a/b+c ",
    "none": None,
    "empty": "",
    "ok": True,
    "list": [1],
}

FILLED = [
    ("barn", "barn"),
    ("{model}-{id}", "Acurite-Tower-1234"),
    ("{model}-{channel}-{id}", "Acurite-Tower-1234"),
    ("{channel}-{id}", "1234"),
    ("w {id}", "w 1234"),
    ("{name}", "a-b-c"),
    ("x{none}", ""),
    ("{empty}", ""),
    ("{ok}", ""),
    ("{list}", ""),
]


@table("text, expected", FILLED)
def test_a_name_is_filled(text: str, expected: str) -> None:
    assert NameTemplate(name_template(text)).fill(FIELDS) == expected


@table("value", ["", 5, "a/b", "a{b", "{a}}", "{}", "x" * 65, "a+", None])
def test_what_is_no_name(value: object) -> None:
    with pytest.raises(ValueError, match="1 to 64 bytes"):
        name_template(value)
