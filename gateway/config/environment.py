"""Keys of the configuration from the environment: `TIDEGATE__SECTION__KEY`, for containers."""

import os
from collections.abc import Mapping
from typing import Any

from gateway.config.errors import ConfigurationError

PREFIX = "TIDEGATE__"
TABLES_MAX = 100
"""Tables of one name that variables may number: a typing mistake is not to make a million."""


def with_environment(
    document: dict[str, Any], environment: Mapping[str, str] = os.environ
) -> dict[str, Any]:
    """Return the document with what variables set in it; they come before the file.

    `TIDEGATE__GATEWAY__ID=barn` is `gateway.id = "barn"`, and `TIDEGATE__LISTENER__0__PORT=1884`
    the port of the first listener. A value that is one of TOML is taken so, any other is a text.
    """
    for name in sorted(environment):
        if name.startswith(PREFIX):
            parts = name.removeprefix(PREFIX).lower().split("__")
            document = _set(document, parts, _value(environment[name]), name)
    return document


def _value(text: str) -> Any:
    import tomllib

    try:
        return tomllib.loads(f"value = {text}")["value"] if "\n" not in text else text
    except tomllib.TOMLDecodeError:
        return text


def _set(place: Any, parts: list[str], value: Any, name: str) -> Any:
    """Return a copy of what is at a place with the value below it."""
    if not parts:
        return value
    first, *rest = parts
    if first.isascii() and first.isdigit():
        tables = [{}] if place is None else place
        number = int(first)
        if not isinstance(tables, list) or number > min(len(tables), TABLES_MAX):
            allowed = "tables are numbered from 0 on, without a gap"
            raise ConfigurationError(name, "", None, allowed)
        below = tables[number] if number < len(tables) else {}
        return [*tables[:number], _set(below, rest, value, name), *tables[number + 1 :]]
    table = {} if place is None else place
    if isinstance(table, list) and len(table) == 1:  # the only one needs no number
        return [_set(table[0], parts, value, name)]
    if not first or not isinstance(table, dict):
        raise ConfigurationError(name, "", None, f"{PREFIX}SECTION__KEY, or SECTION__0__KEY")
    return {**table, first: _set(table.get(first), rest, value, name)}
