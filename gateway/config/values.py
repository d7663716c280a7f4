"""The values of a configuration, each with its key."""

from collections.abc import Iterator
from typing import Any

from gateway.settings.declaration import Key, keys_of


def values_of(settings: Any, place: str = "") -> Iterator[tuple[str, Key, Any]]:
    """Yield (key in messages, declaration, value) of every value."""
    for key in keys_of(type(settings)):
        name = f"{place}.{key.name}" if place else key.name
        value = getattr(settings, key.attribute)
        if value is None:
            continue
        if key.table is None:
            yield name, key, value
        elif key.many:
            for number, each in enumerate(value):
                one = key.single_table and len(value) == 1
                yield from values_of(each, name if one else f"{name}[{number}]")
        else:
            yield from values_of(value, name)
