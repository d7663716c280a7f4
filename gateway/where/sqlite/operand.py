"""Values in the SQL that an expression is translated to, and the steps that work them out.

SQLite has no BOOLEAN and no JSON. Where the translator knows that a value can only be a BOOLEAN,
it is 0 or 1; where it may be something else as well, TRUE, FALSE and a JSON container are the
blobs below, so that `typeof` tells every type of the language from the others.

The conditions of where-language 5 name a value several times. So as not to write (and work out)
an operand several times, it becomes a column of a common table expression, a step. Steps that
build on each other are levels: level 2 selects from level 1, and nothing is nested in the text,
for which SQLite's parser would have no room (its stack has 100 places).
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from enum import Flag
from typing import Final

LEVELS_MAX: Final = 64
"""Most levels of steps; SQLite's time to prepare a statement grows with their third power."""

STEPS_MAX: Final = 1_000
"""Most steps; SQLite has 2,000 columns."""

_GROUP: Final = 32
"""Operands that stand side by side: SQLite has room for 1,000 levels, and for 100 arguments."""

_TEXT_DEPTH: Final = 6
"""Levels of nesting in the text of one step."""

TRUE_BLOB: Final = b"\x01"
FALSE_BLOB: Final = b"\x00"
CONTAINER_BLOB: Final = b"\x02"

PATTERN_ESCAPE: Final = "!"
"""What escapes `%`, `_` and itself in the pattern that `where_like` gets."""

Parameter = int | float | str


class UntranslatableError(Exception):
    """SQLite cannot work this expression out."""


class Kind(Flag):
    """The types that a value may have beside NULL."""

    BOOLEAN = 1
    INTEGER = 2
    REAL = 4
    STRING = 8
    JSON = 16
    NUMBER = INTEGER | REAL
    ANY = BOOLEAN | NUMBER | STRING | JSON


NOTHING: Final = Kind(0)
"""Of a value that is always NULL."""


@dataclass(frozen=True, slots=True)
class Operand:
    """A value: its SQL, its types, the level whose columns it needs, how deeply it is nested.

    What is not nested at all is a column or a parameter, and costs nothing to name again.
    """

    sql: str
    kinds: Kind
    level: int = 0
    depth: int = 0


NULL: Final = Operand("NULL", NOTHING)


def grouped(texts: Sequence[str], form: Callable[[Sequence[str]], str]) -> str:
    """Return what `form` makes of `texts`; of many it makes groups, and then of the groups."""
    while len(texts) > _GROUP:
        starts = range(0, len(texts), _GROUP)
        texts = [form(texts[start : start + _GROUP]) for start in starts]
    return form(texts)


class Parameters:
    """The constants of a translation, which SQLite gets beside its text."""

    def __init__(self) -> None:
        self.values: dict[str, Parameter] = {}

    def add(self, value: Parameter) -> str:
        """Return the name that stands for `value` in the text."""
        name = f"where_{len(self.values)}"
        self.values[name] = value
        return f":{name}"


class Steps:
    """The steps of one condition."""

    def __init__(self, parameters: Parameters) -> None:
        self._parameters = parameters
        self._levels: list[list[str]] = []
        self._bound: dict[str, Operand] = {}

    def parameter(self, value: Parameter) -> str:
        """Return the name that stands for a constant."""
        return self._parameters.add(value)

    def make(self, sql: str, kinds: Kind, *operands: Operand) -> Operand:
        """Return the value of `sql`, in which `operands` stand."""
        level = max((operand.level for operand in operands), default=0)
        depth = max((operand.depth for operand in operands), default=0) + 1
        made = Operand(f"({sql})", kinds, level, depth)
        return made if depth < _TEXT_DEPTH else self.once(made)

    def once(self, operand: Operand) -> Operand:
        """Return the same value as something that may be named several times."""
        if not operand.depth:
            return operand
        bound = self._bound.get(operand.sql)
        if bound is None:
            bound = self._bound[operand.sql] = self._bind(operand)
        return bound

    def _bind(self, operand: Operand) -> Operand:
        if operand.level >= LEVELS_MAX or len(self._bound) >= STEPS_MAX:
            raise UntranslatableError
        if operand.level == len(self._levels):
            self._levels.append([])
        name = f"where_step_{len(self._bound)}"
        self._levels[operand.level].append(f"{operand.sql} AS {name}")
        return Operand(name, operand.kinds, operand.level + 1)

    def select(self, operand: Operand) -> str:
        """Return the SQL of `operand` with all steps that it needs."""
        if not operand.level:
            return operand.sql
        tables = ", ".join(self._tables(self._levels[: operand.level]))
        query = f"SELECT {operand.sql} FROM where_level_{operand.level}"  # noqa: S608 - all ours
        return f"(WITH {tables} {query})"

    def _tables(self, levels: list[list[str]]) -> Iterable[str]:
        # MATERIALIZED: SQLite would otherwise put the steps' texts into each other again.
        for level, columns in enumerate(levels, start=1):
            all_columns = ", ".join(
                [*([f"where_level_{level - 1}.*"] if level > 1 else []), *columns]
            )
            source = f" FROM where_level_{level - 1}" if level > 1 else ""
            yield f"where_level_{level} AS MATERIALIZED (SELECT {all_columns}{source})"
