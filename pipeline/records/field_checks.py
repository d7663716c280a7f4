"""Checks of one field's value: each returns what the column holds or raises FieldError."""

import binascii
import re
from collections.abc import Callable

SHOWN_MAX = 60
"""Characters of a wrong value that an error's text repeats."""

Check = Callable[[object], object]


class FieldError(ValueError):
    """A field's value is not of its type, form or range; the message goes on from its name."""


def integer(low: int, high: int) -> Check:
    """Return a check for an integer in the closed range; 17.0, "17" and true are none."""

    def check(value: object) -> int:
        if type(value) is not int or not low <= value <= high:  # to isinstance a bool is an int
            raise FieldError(f"must be an integer from {low} to {high}, not {_shown(value)}")
        return value

    return check


def matching(pattern: str, words: str) -> Check:
    """Return a check for text that the whole pattern fits; `words` describe it to a person."""
    fits = re.compile(pattern).fullmatch

    def check(value: object) -> str:
        if not isinstance(value, str) or fits(value) is None:
            raise FieldError(f"must be {words}, not {_shown(value)}")
        return value

    return check


def text(value: object) -> str:
    """Check for text, empty or not."""
    if not isinstance(value, str):
        raise FieldError(f"must be text, not {_shown(value)}")
    return value


def filled_text(value: object) -> str:
    """Check for text of at least one character."""
    if not isinstance(value, str) or not value:
        raise FieldError(f"must be text of at least one character, not {_shown(value)}")
    return value


def boolean(value: object) -> bool:
    """Check for true or false; 1 and 0 are neither."""
    if not isinstance(value, bool):
        raise FieldError(f"must be true or false, not {_shown(value)}")
    return value


def base64(value: object) -> bytes:
    """Check for padded base64 of RFC 4648 section 4 and return the bytes it stands for."""
    if not isinstance(value, str):
        raise FieldError(f"must be base64 text, not {_shown(value)}")
    try:
        content = binascii.a2b_base64(value, strict_mode=True)
    except ValueError as error:
        raise FieldError(f"is not base64: {error}") from None
    if len(value) != -(-len(content) // 3) * 4:  # the strict mode lets padding follow whole groups
        raise FieldError("is not base64: Excess padding")
    return content


def properties(value: object) -> list[dict[str, str]]:
    """Check for a list of [name, value] pairs of text and return one struct for each."""
    if not isinstance(value, list):
        raise FieldError(f"must be a list of [name, value] pairs, not {_shown(value)}")
    return [_property(pair) for pair in value]


def _property(pair: object) -> dict[str, str]:
    match pair:
        case [str(name), str(value)]:
            return {"name": name, "value": value}
    raise FieldError(f"must hold pairs of two texts, not {_shown(pair)}")


def _shown(value: object) -> str:
    shown = repr(value[:SHOWN_MAX] if isinstance(value, str) else value)
    return shown if len(shown) <= SHOWN_MAX else f"{shown[:SHOWN_MAX]}..."
