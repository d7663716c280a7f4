"""Ranges of numbers that ended the same way, and what they say of causes."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.storage.ledger.range import (
    MAX_CAUSES,
    OTHER,
    SHORT_RUN,
    LedgerRange,
    collapsed,
    merged,
    parse_cause,
)
from gateway.storage.outbox.fate import Fate


def _range(first: int, last: int, fate: Fate = Fate.FILTERED, cause: str = "0@a") -> LedgerRange:
    causes = parse_cause(cause, last - first + 1)
    return LedgerRange("00a1b2c3d4", "main", first, last, fate, causes)


def _said(ranges: list[LedgerRange]) -> list[tuple[int, int, str, str]]:
    return [(each.first, each.last, each.fate.value, each.cause) for each in ranges]


@pytest.mark.parametrize(
    ("ranges", "expected"),
    [
        ([_range(1, 3), _range(4, 9)], [(1, 9, "filtered", "0@a")]),
        ([_range(4, 9), _range(1, 3)], [(1, 9, "filtered", "0@a")]),
        (
            [_range(1, 3), _range(5, 9)],
            [(1, 3, "filtered", "0@a"), (5, 9, "filtered", "0@a")],
        ),
        (
            [_range(1, 3), _range(4, 4, Fate.DELIVERED, "")],
            [(1, 3, "filtered", "0@a"), (4, 4, "delivered", "")],
        ),
        ([_range(1, 3), _range(4, 4, cause="1@b")], [(1, 4, "filtered", "0@a*3 1@b*1")]),
        (
            [_range(1, 3), _range(4, 6, cause="1@b"), _range(7, 40, cause="0@a*10 1@b*24")],
            [(1, 40, "filtered", "1@b*27 0@a*13")],
        ),
        (
            [_range(1, SHORT_RUN), _range(SHORT_RUN + 1, SHORT_RUN + 1, cause="1@b")],
            [
                (1, SHORT_RUN, "filtered", "0@a"),
                (SHORT_RUN + 1, SHORT_RUN + 1, "filtered", "1@b"),
            ],
        ),
        (
            [_range(1, 1, Fate.REJECTED, "0x87"), _range(2, 2, Fate.REJECTED, "0x99")],
            [(1, 1, "rejected", "0x87"), (2, 2, "rejected", "0x99")],
        ),
        (
            [_range(1, 2, cause="delivered*1 filtered*1"), _range(3, 3)],
            [(1, 2, "filtered", "delivered*1 filtered*1"), (3, 3, "filtered", "0@a")],
        ),
    ],
)
def test_ranges_that_fit_become_one(
    ranges: list[LedgerRange], expected: list[tuple[int, int, str, str]]
) -> None:
    assert _said(collapsed(ranges)) == expected


def test_streams_and_epochs_stay_apart() -> None:
    other_stream = LedgerRange("00a1b2c3d4", "slow", 2, 2, Fate.FILTERED, {"0@a": 1})
    other_epoch = LedgerRange("ffa1b2c3d4", "main", 2, 2, Fate.FILTERED, {"0@a": 1})
    assert len(collapsed([_range(1, 1), other_stream, other_epoch])) == 3


@given(
    st.dictionaries(st.from_regex(r"\d@[0-9a-f]{4}", fullmatch=True), st.integers(1, 99)),
    st.dictionaries(st.from_regex(r"\d@[0-9a-f]{4}", fullmatch=True), st.integers(1, 99)),
)
def test_counts_are_bounded_and_none_is_lost(one: dict[str, int], two: dict[str, int]) -> None:
    both = merged(one, two)
    assert sum(both.values()) == sum(one.values()) + sum(two.values())
    assert len(both) <= MAX_CAUSES
    assert len(one.keys() | two.keys()) <= MAX_CAUSES or OTHER in both
    if len(both) > 1:
        each = LedgerRange("e", "s", 1, sum(both.values()), Fate.FILTERED, both)
        assert parse_cause(each.cause, each.numbers) == both
