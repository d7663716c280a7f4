from collections.abc import Iterator
from itertools import product
from typing import Any, Self

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.mqtt.message import STRING_CODE_POINTS
from gateway.where.language.like import like_matcher, parse_pattern
from gateway.where.language.parser import PATTERN_CODE_POINTS
from tests.support.naive.like import like
from tests.support.table import table

TEXTS = st.text("ab%\n", max_size=12) | st.text("ab", max_size=8)
PATTERNS = st.text("ab%_\n", max_size=8) | st.lists(
    st.sampled_from(["%", "%", "a", "b", "aa", "ab", "a_", "_"]), max_size=6
).map("".join)


class CountingText(str):
    """A text that counts the code points which a matcher looks at."""

    __slots__ = ("looks",)
    looks: list[int]

    def __new__(cls, text: str, looks: list[int]) -> Self:
        counting = super().__new__(cls, text)
        counting.looks = looks
        return counting

    def __iter__(self) -> Iterator[str]:
        for code_point in super().__iter__():
            self.looks[0] += 1
            yield code_point

    def __getitem__(self, key: Any) -> "CountingText":
        return CountingText(super().__getitem__(key), self.looks)

    def find(self, part: str, *span: Any) -> int:
        place = super().find(part, *span)
        start, end = span
        self.looks[0] += (end if place < 0 else place + len(part)) - start
        return place

    def startswith(self, prefix: Any, *span: Any) -> bool:
        self.looks[0] += len(prefix)
        return super().startswith(prefix, *span)

    def endswith(self, suffix: Any, *span: Any) -> bool:
        self.looks[0] += len(suffix)
        return super().endswith(suffix, *span)


def looks_of(pattern: str, text: str) -> int:
    looks = [0]
    like_matcher(parse_pattern(pattern, None))(CountingText(text, looks))
    return looks[0]


@given(TEXTS, PATTERNS)
def test_like_by_its_definition(text: str, pattern: str) -> None:
    assert like_matcher(parse_pattern(pattern, None))(text) is like(text, pattern)


@pytest.mark.uncovered
def test_every_short_pattern_by_its_definition() -> None:
    texts = ["".join(each) for size in range(6) for each in product("ab", repeat=size)]
    for each in (each for size in range(6) for each in product("ab%_", repeat=size)):
        matcher = like_matcher(parse_pattern("".join(each), None))
        assert [matcher(text) for text in texts] == [like(text, "".join(each)) for text in texts]


@given(TEXTS, PATTERNS)
def test_escapes_by_their_definition(text: str, pattern: str) -> None:
    escaped = pattern.replace("a", "!%").replace("b", "!!") + "!_"
    for candidate in (text, text.replace("b", "!") + "_"):
        matches = like_matcher(parse_pattern(escaped, "!"))(candidate)
        assert matches is like(candidate, escaped, "!")


@pytest.mark.parametrize("pattern", ["!", "a!", "!a", "%!", "!!!", "!\n"])
def test_bad_escape(pattern: str) -> None:
    with pytest.raises(ValueError, match="'!' escapes only %, _ and itself"):
        parse_pattern(pattern, "!")


@given(st.text("ab", max_size=40).map("a".__mul__(9).__add__), st.text("ab%_", max_size=24))
def test_every_code_point_is_looked_at_a_bounded_number_of_times(text: str, pattern: str) -> None:
    assert looks_of(pattern, text) <= len(text) + 2 * len(pattern)


@table(
    "pattern",
    [
        "%a" * 127 + "%b",
        "%a_" * 85 + "b",
        "%" + "a" * 253 + "_b",
        "%a_" + "a" * 251 + "b%",
        "%_" + "a" * 252 + "b%",
        "%" + "a_" * 126 + "b%",
        "%" + "_" * 255,
        "_" * 256,
        "%" * 256,
    ],
)
def test_a_hostile_pattern_looks_at_each_code_point_once(pattern: str) -> None:
    assert len(pattern) <= PATTERN_CODE_POINTS
    text = "a" * STRING_CODE_POINTS
    assert looks_of(pattern, text) <= len(text) + 2 * len(pattern)
