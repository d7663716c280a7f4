"""A value that can be written, and its control: a switch, a number, a choice or a button."""

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Control:
    """A value that is written by messages on `<topic of the series>/set`.

    `platform` is Home Assistant's: `switch` takes `on` and `off`, `number` a number from `minimum`
    to `maximum` by `step`, `select` one of `options`, and `button` `press`.
    """

    platform: str
    minimum: float = 0.0
    maximum: float = 0.0
    step: float = 1.0
    unit: str | None = None
    options: tuple[str, ...] = ()


SWITCH = Control("switch")
BUTTON = Control("button")

WORDS = {"on": 1.0, "true": 1.0, "off": 0.0, "false": 0.0}

NO_OPTIONS: Mapping[str, float] = {}


def parse_number(payload: bytes, options: Mapping[str, float] = NO_OPTIONS) -> float:
    """Return a message's number: a number, `on`, `off` or an option, also as `{"value":…}`.

    Raises ValueError for anything else.
    """
    text = payload.decode().strip()
    if text in options:
        return options[text]
    if not options and text.lower() in WORDS:
        return WORDS[text.lower()]
    value = json.loads(text)
    if isinstance(value, dict):
        value = value.get("value")
    if isinstance(value, str):
        value = options.get(value) if options else WORDS.get(value.lower())
    if not isinstance(value, int | float) or not math.isfinite(value):
        raise ValueError(f"{text}: only a number, on or off is allowed")
    if options and value not in options.values():
        raise ValueError(f"{text}: one of {', '.join(options)} is allowed")
    return float(value)
