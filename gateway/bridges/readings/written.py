"""Text and JSON as devices write them, which often deviates from the standard."""

import json
import math
import re

from gateway.bridges.readings.registry import known_unit

LATIN_1 = re.compile(
    rb"[\t\r\n\x20-\x7e\xa0\xb0\xb2\xb3\xb5\xc0-\xd6\xd8-\xf6\xf8-\xfd]*"
)  # letters, and the signs of units; noise on a line contains other bytes

LOOSE = re.compile(
    r"""
    (?P<text>"(?:[^"\\]|\\.|\\$)*"?)  # to the end if it has none, so that this takes linear time
    | '(?P<single>(?:[^'\\]|\\.)*)'
    | (?P<comma>,(?=\s*[}\]]))
    | (?P<empty>:(?=\s*[,}]))
    | (?P<number>(?<![\w.])[-+]?(?:\d+\.?\d*|\.\d+)(?:e[-+]?\d+)?(?![\w.]))
    | (?P<key>(?<![\w.])[a-z_]\w*(?=\s*:))
    | [-+]?(?<![\w.])[a-z][\w.]*(?:\(\w*\))?
    """,
    re.IGNORECASE | re.DOTALL | re.VERBOSE,
)
"""Near-JSON that boards print: Python's quotes, unquoted names, trailing commas, missing values,
numbers such as `+5`, `.5` and `007`, and words such as `nan`."""

JSON_NUMBER = re.compile(r"-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][-+]?\d+)?")

JSON_WORDS = {"true": "true", "false": "false", "null": "null", "none": "null"}

DIGITS_MAX = 300
"""Digits of an integer; a longer one is larger than every float."""

WHOLE = re.compile("[-+]?[0-9]{1,300}")
DECIMAL = re.compile(r"[-+]?(?:\d+\.?\d*|\.\d+)(?:e[-+]?\d+)?", re.ASCII | re.IGNORECASE)
NO_NUMBER = re.compile(r"[-+]?(?:nan|inf|infinity|ovf)(?:\(\w*\))?", re.IGNORECASE)
"""Printed by boards in place of an invalid number."""

ABSENT = frozenset({"", "-", "--", "---", "n/a", "na", "none", "null", "unknown", "unavailable"})
"""Printed in place of a missing value."""

WITH_UNIT = re.compile(r"([-+]?[\d.,]+)\s*([^\s\d.,].*)")


def text_of(data: bytes) -> str:
    """Return text in UTF-8, with or without a byte order mark, or in Latin-1.

    Raises ValueError for bytes that are neither.
    """
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError:
        if LATIN_1.fullmatch(data) is None:
            raise
        return data.decode("latin-1")


def json_of(data: bytes) -> object:
    """Parse JSON, or an object in the near-JSON that boards print.

    `nan`, `inf` and other unquoted words are NaN. Raises ValueError or RecursionError for anything
    else.
    """
    text = text_of(data)
    try:
        return json.loads(text, parse_int=_integer)
    except ValueError:
        if not text.lstrip().startswith("{"):
            raise
        mended = LOOSE.sub(_mend, text)
        if mended == text:
            raise
        return json.loads(mended, parse_int=_integer)


def _mend(match: re.Match[str]) -> str:
    word = match[0]
    if match["text"] is not None or JSON_NUMBER.fullmatch(word):
        return word
    if match["single"] is not None:
        return json.dumps(match["single"].replace("\\'", "'"))
    if match["key"] is not None:
        return json.dumps(word)
    if match["comma"] is not None:
        return ""
    if match["empty"] is not None:
        return ":null"
    if match["number"] is not None:
        return str(int(word)) if WHOLE.fullmatch(word) else repr(float(word))
    return JSON_WORDS.get(word.lower(), "NaN")


def _integer(text: str) -> int | float:
    return int(text) if len(text) <= DIGITS_MAX else float(text)


def number_or_text(text: str, decimal: str = ".") -> int | float | str:
    """Return a cell's value: a number where possible; `decimal` is the decimal separator."""
    if WHOLE.fullmatch(text):
        return int(text)
    number = text if "." in text else text.replace(decimal, ".")
    if DECIMAL.fullmatch(number):
        return float(number)
    return math.nan if NO_NUMBER.fullmatch(text) else text


def number_with_unit(text: str, decimal: str = ".") -> tuple[int | float, str] | None:
    """Return the number and the unit of a text such as `21.5 °C`, None for another."""
    match = WITH_UNIT.fullmatch(text)
    if match is None:
        return None
    number, unit = number_or_text(match[1], decimal), known_unit(match[2].strip())
    return None if isinstance(number, str) or unit is None else (number, unit)
