"""The differences between two configurations, key by key, in a form that can be shown."""

import re
from collections.abc import Iterator, Sequence
from enum import Enum
from typing import Any, NamedTuple

from gateway.config.bridges import BridgeConfig
from gateway.config.configuration import Configuration
from gateway.settings.declaration import keys_of

SECRET = re.compile(r"(^|_)(key|token|secret|password)$")
"""Keys whose values are secret, unless they are file names."""

SHOWN = 200
"""Characters of a value that are shown."""


class Change(NamedTuple):
    """A key of the file with its value before and now, None where there is none."""

    key: str
    old: object
    new: object

    def row(self) -> dict[str, object]:
        """Return it as an answer has it."""
        return {"key": self.key, "old": self.old, "new": self.new}


def differences(old: Configuration, new: Configuration) -> list[Change]:
    """Return the differences; tables of one name are compared in order, bridges by name."""
    found = list(_of_tables(old, new, ""))
    if old.gateway_id != new.gateway_id and not any(each.key == "gateway.id" for each in found):
        found.append(Change("gateway.id", old.gateway_id, new.gateway_id))
    return [*found, *_of_bridges(old.bridges, new.bridges)]


def _of_tables(old: Any, new: Any, place: str) -> Iterator[Change]:
    if old == new:
        return
    if old is None or new is None:
        yield Change(place, _table(old), _table(new))
        return
    for key in keys_of(type(new)):
        name = f"{place}.{key.name}" if place else key.name
        before, now = getattr(old, key.attribute), getattr(new, key.attribute)
        if before == now:
            continue
        if key.table is None:
            yield Change(name, _shown(before, key.name), _shown(now, key.name))
        elif key.many:
            yield from _of_arrays(before, now, name, single_table=key.single_table)
        else:
            yield from _of_tables(before, now, name)


def _of_arrays(
    old: Sequence[Any], new: Sequence[Any], name: str, *, single_table: bool
) -> Iterator[Change]:
    """Yield the differences of two arrays between what they have in common at both ends."""
    if single_table and len(old) == len(new) == 1:
        yield from _of_tables(old[0], new[0], name)
        return
    least = min(len(old), len(new))
    begin = next((n for n in range(least) if old[n] != new[n]), least)
    least -= begin
    end = next((n for n in range(least) if old[-1 - n] != new[-1 - n]), least)
    before, now = old[begin : len(old) - end], new[begin : len(new) - end]
    if len(before) == len(now):
        for number, pair in enumerate(zip(before, now, strict=True), begin):
            yield from _of_tables(*pair, f"{name}[{number}]")
        return
    yield from (Change(f"{name}[{n}]", _table(each), None) for n, each in enumerate(before, begin))
    yield from (Change(f"{name}[{n}]", None, _table(each)) for n, each in enumerate(now, begin))


def _of_bridges(old: Sequence[BridgeConfig], new: Sequence[BridgeConfig]) -> Iterator[Change]:
    before = {(each.kind.name, each.name): each for each in old}
    now = {(each.kind.name, each.name): each for each in new}
    for kind, name in {**before, **now}:
        one, other = before.get((kind, name)), now.get((kind, name))
        before_settings = None if one is None else one.settings
        yield from _of_tables(
            before_settings, None if other is None else other.settings, f"{kind}({name})"
        )


def _table(table: Any) -> object:
    """Return a table's values that are not defaults."""
    if table is None:
        return None
    shown = {}
    for key in keys_of(type(table)):
        value = getattr(table, key.attribute)
        if key.needed or value != key.default:
            shown[key.name] = _shown(value, key.name)
    return shown


def _shown(value: Any, name: str) -> object:
    """Return a value as JSON, shortened and without secrets."""
    if isinstance(value, bool | int | float) or value is None:
        return value
    if isinstance(value, tuple | list):
        return [_shown(each, name) for each in value]
    if hasattr(value, "__dataclass_fields__"):
        return _table(value)
    text = str(value.value) if isinstance(value, Enum) else str(value)
    if SECRET.search(name) and "/" not in text and not text.startswith("credential:"):
        return "…"
    return re.sub(r"//[^/]*@", "//…@", text)[:SHOWN]
