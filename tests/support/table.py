"""One test for a table of cases: every case runs, and each that fails is named."""

import functools
import inspect
import itertools
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import pytest

Test = Callable[..., Any]

SHORT = (str, bytes, int, float, type(None))
"""Types whose values name a case by themselves."""


class Case(NamedTuple):
    """A line of a table: what it is called, and an argument for each name."""

    name: str
    arguments: Mapping[str, Any]


def table(
    names: str | Sequence[str], rows: Iterable[Any], ids: Any = None
) -> Callable[[Test], Test]:
    """Run the test once for each row, as one test: `pytest.mark.parametrize` with a single id.

    A case that fails is told with its name, and the others run all the same. Fixtures are made
    once for all rows. Two tables above each other give each row of one with each of the other.
    """
    words = names.replace(" ", "").split(",") if isinstance(names, str) else list(names)
    cases = [_case(words, row, index, ids) for index, row in enumerate(rows)]
    if not cases:
        raise ValueError(f"the table of {words} has no row: its test could not fail")

    def decorate(test: Test) -> Test:
        inner, below = getattr(test, "table", (test, [Case("", {})]))
        product = [_joined(lower, upper) for lower, upper in itertools.product(below, cases)]
        made = _made_async(inner, product) if inspect.iscoroutinefunction(inner) else None
        made = made or _made(inner, product)
        made.__dict__.update(test.__dict__, table=(inner, product))
        made.__signature__ = _signature(inner, product[0].arguments)  # type: ignore[attr-defined]
        return made  # what pytest asks for its fixtures

    return decorate


def _made(test: Test, cases: Sequence[Case]) -> Test:
    @functools.wraps(test)
    def run(*, subtests: pytest.Subtests, **fixtures: Any) -> None:
        for name, arguments in cases:
            with subtests.test(name):
                test(**fixtures, **arguments)

    return run


def _made_async(test: Test, cases: Sequence[Case]) -> Test:
    @functools.wraps(test)
    async def run(*, subtests: pytest.Subtests, **fixtures: Any) -> None:
        for name, arguments in cases:
            with subtests.test(name):
                await test(**fixtures, **arguments)

    return run


def _signature(test: Test, given: Mapping[str, Any]) -> inspect.Signature:
    own = inspect.signature(test).parameters
    if unknown := set(given) - set(own):
        raise TypeError(f"{test.__name__} has no argument {', '.join(sorted(unknown))}")
    wanted = [name for name in own if name not in given]
    kind = inspect.Parameter.KEYWORD_ONLY
    return inspect.Signature([inspect.Parameter(name, kind) for name in (*wanted, "subtests")])


def _case(names: Sequence[str], row: Any, index: int, ids: Any) -> Case:
    parameters = pytest.param(*row) if _is_row(row, names) else pytest.param(row)
    if isinstance(row, type(parameters)):
        parameters = row
        if row.marks:
            raise ValueError(f"{row}: a case of a table has no marks of its own")
    values = dict(zip(names, parameters.values, strict=True))
    name = str(parameters.id or _name(values, index, ids))
    # a worker reports it in UTF-8, which half of a surrogate pair has none in
    return Case(name.encode(errors="backslashreplace").decode(), values)


def _is_row(row: Any, names: Sequence[str]) -> bool:
    return len(names) > 1 and isinstance(row, tuple | list)


def _name(values: Mapping[str, Any], index: int, ids: Any) -> str:
    if callable(ids):
        return "-".join(str(ids(value)) for value in values.values())
    if ids is not None:
        return str(list(ids)[index])
    return "-".join(_word(name, value, index) for name, value in values.items())


def _word(name: str, value: Any, index: int) -> str:
    if isinstance(value, SHORT):
        return str(value)
    return str(getattr(value, "__name__", f"{name}{index}"))


def _joined(lower: Case, upper: Case) -> Case:
    return Case(
        "-".join(filter(None, (lower.name, upper.name))), {**lower.arguments, **upper.arguments}
    )
