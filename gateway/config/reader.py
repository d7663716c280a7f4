"""Converts a document to the declared settings, and notes every mistake."""

import re
from collections.abc import Iterable, Mapping
from typing import Any, Protocol, TypeVar, runtime_checkable

from gateway.config.errors import ConfigurationError
from gateway.settings.checks import did_you_mean, meant
from gateway.settings.declaration import Key, Mistake, keys_of

T = TypeVar("T")


@runtime_checkable
class Related(Protocol):
    """Settings that may conflict."""

    def mistakes(self, given: frozenset[str]) -> Iterable[Mistake]:
        """Yield conflicts; `given` are the attributes in the file."""


class Reader:
    """Reads the tables of one file; faults are in `mistakes`."""

    def __init__(self, file: str) -> None:
        self._file = file
        self.mistakes: list[ConfigurationError] = []

    def mistake(self, key: str, value: object, allowed: str) -> None:
        """Note a mistake; the value is None if the key is missing."""
        shown = _without_credentials(value)
        self.mistakes.append(ConfigurationError(self._file, key, shown, allowed))

    def read(self, settings: type[T], table: object, place: str = "", **further: Any) -> T:
        """Return a table's settings, with `further` arguments of the class.

        `place` is the table's name in messages. A wrong value is replaced by the default, or None
        without one: the result is then only good for finding more mistakes.
        """
        before = len(self.mistakes)
        if not isinstance(table, dict):
            self.mistake(place, table, f"a table: [{place}]")
            return settings(**further, **_missing(settings, {}))
        known = {key.name: key for key in keys_of(settings)}
        likely = self._refuse_unknown(table, known, place)
        values: dict[str, Any] = {}
        for name, key in known.items():
            if name in table:
                self._read_key(key, table[name], _join(place, name), values)
            elif key.needed and name not in likely:
                self.mistake(_join(place, name), None, "must be given")
        made = settings(**further, **values, **_missing(settings, values))
        if len(self.mistakes) == before and isinstance(made, Related):
            for name, value, allowed in made.mistakes(frozenset(values)):
                self.mistake(_join(place, name), value, allowed)
        return made

    def _read_key(self, key: Key, value: object, place: str, values: dict[str, Any]) -> None:
        """Store a value's meaning in `values`, under the attribute's name."""
        if key.table is None:
            try:
                values[key.attribute] = key.check(value)
            except ValueError as error:
                self.mistake(place, value, f"{error}{did_you_mean(value, key.check.words)}")
        elif not key.many:
            values[key.attribute] = self.read(key.table, value, place)
        elif key.single_table and (not isinstance(value, list) or len(value) == 1):
            value = value[0] if isinstance(value, list) else value
            values[key.attribute] = (self.read(key.table, value, place),)
        elif not isinstance(value, list):
            self.mistake(place, value, f"[[{place}]], one for each")
        elif len(value) > key.many or (key.needed and not value):
            self.mistake(place, len(value), f"{int(key.needed)} to {key.many} tables [[{place}]]")
        elif value:
            values[key.attribute] = self._read_tables(key.table, value, place)

    def _read_tables(self, settings: type[T], array: list[Any], place: str) -> tuple[T, ...]:
        return tuple(
            self.read(settings, table, f"{place}[{number}]") for number, table in enumerate(array)
        )

    def _refuse_unknown(
        self, table: Mapping[str, object], known: Mapping[str, Key], place: str
    ) -> set[str]:
        """Note the unknown keys; return the keys that they may have been meant for."""
        likely = set()
        for name in (name for name in table if name not in known):
            like = meant(name, known)
            allowed = "unknown key; there are " + ", ".join(sorted(known))
            allowed += f"; did you mean {like}?" if like else ""
            self.mistake(_join(place, name), table[name], allowed)
            likely.add(like or "")
        return likely


def _missing(settings: type, values: Mapping[str, object]) -> dict[str, None]:
    """Return the attributes that have neither a value nor a default."""
    return {
        key.attribute: None
        for key in keys_of(settings)
        if key.needed and key.attribute not in values
    }


def _join(place: str, name: str) -> str:
    return f"{place}.{name}" if place else name


def _without_credentials(value: object) -> object:
    """Return the value without secrets: the text between `//` and `@` in a URL."""
    return re.sub(r"//.*@", "//***@", value) if isinstance(value, str) else value
