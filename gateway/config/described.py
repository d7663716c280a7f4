"""Checks of values that also say, to people and to editors, what they allow."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Generic, TypeVar

T = TypeVar("T")

Schema = Mapping[str, Any]
"""The keywords of JSON Schema for one value."""


def spell(value: object) -> str:
    """Return a value as TOML writes it."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, list | tuple):
        return f"[{', '.join(map(spell, value))}]"
    return f'"{value}"' if isinstance(value, str) else str(value)


@dataclass(frozen=True, slots=True, eq=False)
class Check(Generic[T]):
    """Called with a value of the file, returns what it means; raises ValueError with `allowed`.

    `spell` turns what it means into what the file says.
    """

    read: Callable[[object], T]
    allowed: str
    schema: Schema = field(default_factory=dict)
    spell: Callable[[Any], str] = spell

    def __call__(self, value: object) -> T:
        """Return what the value means; raise ValueError."""
        return self.read(value)

    @property
    def words(self) -> list[str]:
        """The words that are allowed where nothing else is; none where anything else is."""
        return list(self.schema.get("enum", ()))


def check(
    allowed: str, spell: Callable[[Any], str] = spell, **schema: Any
) -> Callable[[Callable[[object], T]], Check[T]]:
    """Describe a function that checks: in the words of the documentation, and as JSON Schema."""
    return lambda read: Check(read, allowed, schema, spell)
