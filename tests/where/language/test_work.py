"""What is counted of an expression where a text's length adds to it."""

from gateway.where.compile import compile_where
from gateway.where.language import work
from gateway.where.language.expression import walk
from gateway.where.language.like import parse_pattern
from gateway.where.language.work import adds_up, liked
from tests.support.table import table


def test_letters_beyond_ascii_cost_more() -> None:
    assert (work.letters("a" * 1_000), work.letters("é" * 1_000)) == (1_000, 8_000)


def test_what_is_copied_counts() -> None:
    assert work.copied("a" * 10, "é" * 20) == 60
    assert [work.cut("a" * 1_000, *rest) for rest in ((5,), (1, 10), (1, -3), (1, 2.5))] == [
        *(2_000, 20, 0, 4)
    ]


def test_only_texts_are_long() -> None:
    assert work.compared("a" * 500, "a" * 400) == 400
    assert work.compared("a" * 500, 5) == work.compared(None, "a" * 500) == 0


@table(
    ("size", "part", "each"),
    [(1_000, 1, 1), (1_000, 900, 300), (20_000, 1, 1), (20_000, 90, 50), (60_000, 90, 8)],
)
def test_a_search_counts_by_what_it_may_come_to(size: int, part: int, each: int) -> None:
    assert work.searched("a" * size, "b" * part) == size * each


@table(
    ("pattern", "each"),
    [
        ("abc", None),
        ("a_c", None),
        ("", None),
        ("%", None),
        ("a%", None),
        ("%a_", None),
        ("a_%b_", None),
        ("%%", None),
        ("%a%", 1),
        ("%a%bcd%", 3),
        ("x%a%bcd%longer_end", 3),
        ("%_%", 100),
        ("%a_b%c%", 100),
    ],
)
def test_like(pattern: str, each: int | None) -> None:
    count = liked(parse_pattern(pattern, None))
    assert (None if count is None else count("x" * 2_000) // 2_000) == each


@table(
    ("text", "long"),
    [
        ("payload.a = 1 AND qos > 1", False),
        ("payload.a = b", True),
        ("payload.a IN ('x', 'y')", False),
        ("payload.a IN ('x', b)", True),
        ("payload.a BETWEEN 1 AND 'z'", False),
        ("payload.a BETWEEN 1 AND b", True),
        ("topic LIKE 'a/%'", False),
        ("CASE payload WHEN 'a' THEN b ELSE c END", False),
        ("payload.a + 1 - ABS(b)", False),
        ("LENGTH(payload)", False),
        ("1 + LENGTH(UPPER(payload))", True),
        ("CASE WHEN retain THEN 1 ELSE 2 END", False),
        ("CASE payload WHEN a THEN 1 END", True),
        ("payload LIKE '%a%'", True),
    ],
)
def test_where_a_length_may_add_up(text: str, long: bool) -> None:
    assert adds_up(walk(compile_where(text).expression)) is long


def test_each_node_counts() -> None:
    assert compile_where("a = 1 AND b").steps == 5 * work.NODE
