"""Text and JSON as devices write them, which is not always as they should."""

import json
import re

LATIN_1 = re.compile(
    rb"[\t\r\n\x20-\x7e\xa0\xb0\xb2\xb3\xb5\xc0-\xd6\xd8-\xf6\xf8-\xfd]*"
)  # letters, and the signs of units; noise on a line has other bytes, too

BARE_WORD = re.compile(
    r'"(?:[^"\\]|\\.|\\$)*"?'  # a text, to the end if it has none, so that this takes linear time
    r"|[-+]?(?<![\w.])[a-z][\w.]*(?:\(\w*\))?",
    re.IGNORECASE | re.DOTALL,
)

JSON_WORDS = {"true": "true", "false": "false", "null": "null", "none": "null"}

DIGITS_MAX = 300
"""Digits of an integer; a longer one is beyond every float."""


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
    """Return what JSON says; in an object `nan`, `inf` and other words without quotes are NaN.

    Raises ValueError or RecursionError for what is none.
    """
    text = text_of(data)
    try:
        return json.loads(text, parse_int=_integer)
    except ValueError:
        if not text.lstrip().startswith("{"):
            raise
        mended = BARE_WORD.sub(_mend, text)
        if mended == text:
            raise
        return json.loads(mended, parse_int=_integer)


def _mend(match: re.Match[str]) -> str:
    word = match[0]
    return word if word.startswith('"') else JSON_WORDS.get(word.lower(), "NaN")


def _integer(text: str) -> int | float:
    return int(text) if len(text) <= DIGITS_MAX else float(text)
