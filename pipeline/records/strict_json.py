"""JSON as RFC 8259 has it, out of bytes: UTF-8 only, no NaN, no half surrogates."""

import json

DIGITS_MAX = 4_300
"""Digits of an integer that Python converts; a longer one becomes a float, which may be inf."""


class NotJsonError(ValueError):
    """The bytes are not one JSON text; the message says what is wrong and where."""


def parse(text: bytes, *, constants: bool = False) -> object:
    """Return the value of one JSON text; of a name that stands twice the last value counts.

    Integers of any size are exact up to 4,300 digits. With `constants`, NaN and Infinity are taken
    as floats. Raises NotJsonError, and nothing else.
    """
    try:
        decoded = text.decode("utf-8")
        value = _LENIENT_DECODER.decode(decoded) if constants else _decode(decoded)
        if "\\ud" in decoded or "\\uD" in decoded:  # an escape may name half a character
            json.dumps(value, ensure_ascii=False).encode("utf-8")
    except json.JSONDecodeError as error:
        raise NotJsonError(f"{error.msg} at character {error.pos + 1}") from None
    except UnicodeDecodeError as error:
        raise NotJsonError(f"not UTF-8 at byte {error.start + 1}") from None
    except UnicodeEncodeError:
        raise NotJsonError("a \\u escape names half a surrogate pair") from None
    except RecursionError:
        raise NotJsonError("nested too deeply") from None
    return value


def _decode(text: str) -> object:
    try:
        return _DECODER.decode(text)
    except (json.JSONDecodeError, NotJsonError):
        raise
    except ValueError:  # Python converts at most DIGITS_MAX digits
        return _LONG_INTEGER_DECODER.decode(text)


def _refuse_constant(name: str) -> object:
    raise NotJsonError(f"{name} is not JSON")


def _integer(digits: str) -> int | float:
    return int(digits) if len(digits) <= DIGITS_MAX else float(digits)


_DECODER = json.JSONDecoder(parse_constant=_refuse_constant)
_LENIENT_DECODER = json.JSONDecoder(parse_int=_integer)
_LONG_INTEGER_DECODER = json.JSONDecoder(parse_constant=_refuse_constant, parse_int=_integer)
