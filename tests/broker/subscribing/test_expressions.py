import gc
import sys
from pathlib import Path

import pytest

from gateway.broker.subscribing import expressions as module
from gateway.broker.subscribing.expressions import Expressions, TooManyExpressions
from gateway.pieces import complete
from gateway.where.language.errors import WhereError


def test_equal_expressions_are_compiled_once() -> None:
    expressions = Expressions(10)
    assert expressions.get("x = 1") is expressions.get("x = 1")


def test_an_expression_is_forgotten_with_its_last_user() -> None:
    expressions = Expressions(1)
    held = expressions.get("x = 1")
    with pytest.raises(TooManyExpressions, match="all 1 distinct expressions are in use"):
        expressions.get("x = 2")
    assert expressions.get("x = 1") is held
    assert expressions.in_use() == [held]
    del held
    gc.collect()
    assert len(expressions) == 0
    expressions.get("x = 2")


def test_an_expression_in_error_takes_no_place() -> None:
    expressions = Expressions(1)
    with pytest.raises(WhereError):
        expressions.get("x = ")
    assert len(expressions) == 0


LONG = " OR ".join(f"a{number} = {number}" for number in range(100))


def test_a_long_expression_is_compiled_in_pieces() -> None:
    expressions = Expressions(10)
    pieces = expressions.get_in_pieces(LONG)
    assert len(list(pieces)) == 3
    held = expressions.get(LONG)  # nobody uses it yet
    assert list(expressions.get_in_pieces(LONG)) == []
    assert expressions.in_use() == [held]


def test_two_that_are_compiled_at_a_time_are_one() -> None:
    expressions = Expressions(1)
    pieces = expressions.get_in_pieces(LONG)
    next(pieces)
    held = expressions.get(LONG)
    assert complete(pieces) is held


def test_what_compiles_is_imported_in_pieces(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    names = ("compiled_first", "compiled_last")
    for name in names:
        (tmp_path / f"{name}.py").touch()
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr(module, "COMPILER", (*names, "sys", "compiled_never"))
    (tmp_path / "compiled_never.py").touch()
    pieces = Expressions(10).get_in_pieces("x = 1")
    for each in (*names, "compiled_never"):
        assert each not in sys.modules
        next(pieces)
        assert each in sys.modules
        monkeypatch.delitem(sys.modules, each)
    assert complete(pieces).text == "x = 1"
