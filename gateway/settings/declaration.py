"""How settings are declared: each key once, with its check, its default and its meaning.

A table of the configuration file is a `settings_class`, and its keys are fields made by `key`.
Reading, defaults, the documentation's lists and the JSON Schema are all derived from that.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import MISSING, Field, FrozenInstanceError, dataclass, field, fields
from typing import Any, Generic, NoReturn, TypeVar, dataclass_transform, overload

T = TypeVar("T")
D = TypeVar("D")

Schema = Mapping[str, Any]
"""The keywords of JSON Schema for one value."""

TABLES_MAX = 1_000
"""Tables of one array, unless its declaration has another bound."""

Mistake = tuple[str, object, str]
"""A key, its value (None if it is missing), and what is allowed."""


def spell(value: object) -> str:
    """Return a value as TOML writes it."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, list | tuple):
        return f"[{', '.join(map(spell, value))}]"
    return f'"{value}"' if isinstance(value, str) else str(value)


@dataclass(frozen=True, slots=True, eq=False)
class Check(Generic[T]):
    """Called with a value of the file, returns its meaning; raises ValueError with `allowed`.

    `spell` converts the meaning back to the file's form.
    """

    read: Callable[[object], T]
    allowed: str
    schema: Schema = field(default_factory=dict)
    spell: Callable[[Any], str] = spell

    def __call__(self, value: object) -> T:
        """Return the value's meaning; raise ValueError."""
        return self.read(value)

    @property
    def words(self) -> list[str]:
        """The words that are allowed if nothing else is; none otherwise."""
        return list(self.schema.get("enum", ()))


def check(
    allowed: str, spell: Callable[[Any], str] = spell, **schema: Any
) -> Callable[[Callable[[object], T]], Check[T]]:
    """Describe a checking function: in the words of the documentation, and as JSON Schema."""
    return lambda read: Check(read, allowed, schema, spell)


@dataclass(frozen=True, slots=True)
class Key:
    """A key of a table, or a nested table if `table` is given, one of up to `many` if that is.

    `needed` is whether the file must have it, `single_table` whether one of many may be a plain
    table.
    """

    name: str
    attribute: str
    meaning: str
    check: Check[Any]
    default: Any
    needed: bool
    shown: str
    table: type | None = None
    many: int = 0
    single_table: bool = False

    @property
    def default_shown(self) -> str:
        """The default in the documentation's words."""
        if self.shown or self.needed:
            return self.shown or "required"
        return "-" if self.default in (None, ()) else f"`{self.check.spell(self.default)}`"


@overload
def key(check: Callable[[object], T], meaning: str, *, name: str = "") -> T: ...
@overload
def key(
    check: Callable[[object], T], meaning: str, default: D, *, name: str = "", shown: str = ""
) -> T | D: ...
def key(
    check: Callable[[object], Any],
    meaning: str,
    default: Any = MISSING,
    *,
    name: str = "",
    shown: str = "",
) -> Any:
    """Declare a key; without a default it is required.

    `check` returns a value's meaning, or raises ValueError with what is allowed. `meaning` is for
    the documentation, in Markdown. `name` is the file's name, if it differs from the
    attribute; `shown` is the default in words.
    """
    known = check if isinstance(check, Check) else Check(check, "")
    metadata = {"meaning": meaning, "check": known, "name": name, "shown": shown}
    return field(default=default, metadata=metadata)


def table(settings: type[T], *, name: str = "", default: Any = MISSING) -> Any:
    """Declare a nested table; without a default a missing one counts as empty."""
    if default is MISSING:
        return field(default_factory=settings, metadata={"table": settings, "name": name})
    return field(default=default, metadata={"table": settings, "name": name})


def tables(
    settings: type[T],
    *,
    name: str,
    default: tuple[T, ...] = (),
    most: int = TABLES_MAX,
    needed: bool = False,
    single_table: bool = False,
) -> Any:
    """Declare an array of at most `most` nested tables, such as `[[listener]]`.

    One that is `needed` has at least one table; with `single_table` a single one may be written as
    `[it]`.
    """
    metadata = {"table": settings, "name": name, "many": most, "single_table": single_table}
    return field(default=MISSING if needed else default, metadata=metadata)


def _fill(self: Any, *values: Any, **named: Any) -> None:
    declared = fields(self)
    given = dict(zip((each.name for each in declared), values, strict=False))
    wrong = [*values[len(declared) :], *(given.keys() & named), *(named.keys() - _names(declared))]
    if wrong:
        raise TypeError(f"{type(self).__name__}: {wrong[0]!r} is unknown, or given twice")
    given.update(named)
    for each in declared:
        value = given.get(each.name, each.default)
        if value is MISSING:
            make: Any = each.default_factory
            if make is MISSING:
                raise TypeError(f"{type(self).__name__} needs {each.name}")
            value = make()
        object.__setattr__(self, each.name, value)


def _names(declared: tuple[Field[Any], ...]) -> set[str]:
    return {each.name for each in declared}


def _values(self: Any) -> tuple[Any, ...]:
    return tuple([getattr(self, each.name) for each in fields(self)])


def _equals(self: Any, other: object) -> bool:
    return type(other) is type(self) and _values(self) == _values(other)


def _hash(self: Any) -> int:
    return hash(_values(self))


def _reduce(self: Any) -> tuple[type, tuple[Any, ...]]:
    """Return how a copy is made: by the constructor, since attributes cannot be set."""
    return type(self), _values(self)


def _shown(self: Any) -> str:
    parts = [f"{each.name}={getattr(self, each.name)!r}" for each in fields(self)]
    return f"{type(self).__name__}({', '.join(parts)})"


def _refuse(self: Any, name: str, _: object = None) -> NoReturn:
    raise FrozenInstanceError(f"{type(self).__name__}.{name} cannot be changed")


@dataclass_transform(frozen_default=True, field_specifiers=(field,))
def settings_class(kind: type[T]) -> type[T]:
    """Make the class a frozen dataclass with slots, whose methods are the same for all of them.

    `dataclass(frozen=True)` generates six functions for each class, some 10 KiB of code that a
    gateway holds as long as it runs. Reading an attribute costs the same, making an object more.
    """
    made: Any = dataclass(init=False, repr=False, eq=False, slots=True)(kind)
    made.__init__, made.__repr__ = _fill, _shown
    made.__eq__, made.__hash__, made.__reduce__ = _equals, _hash, _reduce
    made.__setattr__ = made.__delattr__ = _refuse
    result: type[T] = made
    return result


def keys_of(settings: type) -> Iterator[Key]:
    """Yield a class's declarations, in order; fields that are not in the file are skipped."""
    for each in fields(settings):
        if each.metadata:
            needed = each.default is MISSING and each.default_factory is MISSING
            yield _key(each.name, each.default, needed=needed, **each.metadata)


def _key(
    attribute: str,
    default: Any,
    *,
    needed: bool,
    name: str,
    meaning: str = "",
    check: Check[Any] = Check(lambda value: value, ""),
    shown: str = "",
    table: type | None = None,
    many: int = 0,
    single_table: bool = False,
) -> Key:
    return Key(
        *(
            name or attribute,
            attribute,
            meaning,
            check,
            default,
            needed,
            shown,
            table,
            many,
            single_table,
        )
    )
