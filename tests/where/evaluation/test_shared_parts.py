from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.mqtt.message import Message
from gateway.where.compile import SharingCompiler, compile_where
from gateway.where.evaluation.shared_parts import MAXIMUM_NODES, SharedParts
from gateway.where.language.conversions import to_string
from gateway.where.language.functions import FUNCTIONS, Function
from gateway.where.language.parser import parse
from tests.support.table import table
from tests.support.where.strategies import colliding_filters, expressions, messages
from tests.support.where.walker import walk

MESSAGE = Message("t/u", b'{"v":"a"}')


@pytest.fixture
def calls(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Return a list of what UPPER was called with."""
    noted: list[str] = []

    def compute(text: str) -> str:
        noted.append(text)
        return text.upper()

    monkeypatch.setitem(FUNCTIONS, "UPPER", Function(compute, (to_string,), 1, 1))
    return noted


TEXTS = ("UPPER(v) = 'A'", "NOT UPPER(v) != 'A'", "qos = 0 AND UPPER(v) IN ('A', 'B')")


@pytest.mark.parametrize("promoted", [False, True])
def test_a_part_of_several_is_worked_out_once_for_a_message(
    calls: list[str], promoted: bool
) -> None:
    wheres = [compile_where(text) for text in TEXTS]
    if promoted:
        assert all(where.promote() for where in wheres)
    for number in range(1, 3):
        message = Message("t", b'{"v":"a"}')
        assert all(where.passes(message) for where in wheres)
        assert len(calls) == number


def test_a_part_of_one_is_not_kept_with_the_message() -> None:
    where = compile_where("UPPER(v) = 'A'")
    message = Message("t", b'{"v":"a"}')
    assert where.passes(message)
    assert message.part_values is None


def test_what_is_kept_can_be_forgotten(calls: list[str]) -> None:
    wheres = [compile_where(text) for text in TEXTS]
    message = Message("t", b'{"v":"a"}')
    for number in range(1, 3):
        assert wheres[0].passes(message)
        assert len(calls) == number
        message.part_values = None
        assert message.part_values is None


@table(
    ("text", "shared"),
    [
        ("LENGTH(v)", True),
        ("CAST(v AS INTEGER)", True),
        ("v + 1", True),
        ("v LIKE 'a%'", True),
        ("TOPIC_MATCHES('a/#')", True),
        ("CASE v WHEN 1 THEN 2 END", True),
        ("CASE WHEN v THEN 2 END", True),
        ("v", False),
        ("v = 1", False),
        ("+".join(["v"] * (MAXIMUM_NODES - 1)), True),
        ("+".join(["v"] * MAXIMUM_NODES), False),
    ],
)
def test_what_costs_more_than_a_look_is_shared(text: str, shared: bool) -> None:
    compiler = SharingCompiler()
    trees = [parse(text) for _ in range(2)]
    readers = [compiler.value(trees[0])]
    assert not compiler.shares(trees[0])
    readers.append(compiler.value(trees[1]))
    assert compiler.shares(trees[0]) is compiler.shares(trees[1]) is shared
    assert [read(MESSAGE) for read in readers] == [readers[0](MESSAGE)] * 2


@pytest.mark.parametrize("other", ["v + 1.0", "v + TRUE", "v - 1", "$user.v + 1", "1 + v"])
def test_parts_of_another_meaning_are_others(other: str) -> None:
    compiler = SharingCompiler()
    kept = [compiler.value(parse(text)) for text in ("v + 1", other)]
    assert not compiler.shares(parse("v + 1"))
    assert len(kept) == 2


def test_a_part_is_forgotten_with_the_last_expression() -> None:
    parts = SharedParts()
    build = parts.builder(lambda _, compiler: lambda _: 7)
    compiler = SharingCompiler()
    kept: list[Callable[[Message], object]] = [build(parse("LENGTH(v)"), compiler) for _ in "ab"]
    assert len(parts) == 1
    assert parts.shares(parse("LENGTH(v)"))
    kept.clear()
    assert len(parts) == 0
    assert not parts.shares(parse("LENGTH(v)"))


@pytest.mark.uncovered
@given(st.lists(expressions() | colliding_filters(), min_size=2, max_size=6), messages())
def test_expressions_together_give_what_each_gives_alone(
    texts: list[str], message: Message
) -> None:
    texts += [f"({one}) = ({other})" for one in texts[:2] for other in texts[:2]]
    wheres = [compile_where(text) for text in texts]
    for where in wheres[::2]:
        where.promote()
    results = [where.evaluate(message) for where in wheres]
    assert results == [walk(text, message) for text in texts]
    assert [where.evaluate(message) for where in wheres] == results
