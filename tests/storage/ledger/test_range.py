"""Ranges of numbers that ended the same way, and what they say of reasons."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.storage.ledger.range import (
    MAX_REASONS,
    OTHER,
    SHORT_RUN,
    LedgerRange,
    collapsed,
    merged,
    parse_reason,
)
from gateway.storage.outbox.outcome import Outcome


def _range(
    first: int, last: int, outcome: Outcome = Outcome.FILTERED, reason: str = "0@a"
) -> LedgerRange:
    reasons = parse_reason(reason, last - first + 1)
    return LedgerRange("00a1b2c3d4", "main", first, last, outcome, reasons)


def _said(ranges: list[LedgerRange]) -> list[tuple[int, int, str, str]]:
    return [(each.first, each.last, each.outcome.value, each.reason) for each in ranges]


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
            [_range(1, 3), _range(4, 4, Outcome.DELIVERED, "")],
            [(1, 3, "filtered", "0@a"), (4, 4, "delivered", "")],
        ),
        ([_range(1, 3), _range(4, 4, reason="1@b")], [(1, 4, "filtered", "0@a*3 1@b*1")]),
        (
            [_range(1, 3), _range(4, 6, reason="1@b"), _range(7, 40, reason="0@a*10 1@b*24")],
            [(1, 40, "filtered", "1@b*27 0@a*13")],
        ),
        (
            [_range(1, SHORT_RUN), _range(SHORT_RUN + 1, SHORT_RUN + 1, reason="1@b")],
            [
                (1, SHORT_RUN, "filtered", "0@a"),
                (SHORT_RUN + 1, SHORT_RUN + 1, "filtered", "1@b"),
            ],
        ),
        (
            [_range(1, 1, Outcome.REJECTED, "0x87"), _range(2, 2, Outcome.REJECTED, "0x99")],
            [(1, 1, "rejected", "0x87"), (2, 2, "rejected", "0x99")],
        ),
        (
            [_range(1, 2, reason="delivered*1 filtered*1"), _range(3, 3)],
            [(1, 2, "filtered", "delivered*1 filtered*1"), (3, 3, "filtered", "0@a")],
        ),
    ],
)
def test_ranges_that_fit_become_one(
    ranges: list[LedgerRange], expected: list[tuple[int, int, str, str]]
) -> None:
    assert _said(collapsed(ranges)) == expected


def test_streams_and_epochs_stay_apart() -> None:
    other_stream = LedgerRange("00a1b2c3d4", "slow", 2, 2, Outcome.FILTERED, {"0@a": 1})
    other_epoch = LedgerRange("ffa1b2c3d4", "main", 2, 2, Outcome.FILTERED, {"0@a": 1})
    assert len(collapsed([_range(1, 1), other_stream, other_epoch])) == 3


@given(
    st.dictionaries(st.from_regex(r"\d@[0-9a-f]{4}", fullmatch=True), st.integers(1, 99)),
    st.dictionaries(st.from_regex(r"\d@[0-9a-f]{4}", fullmatch=True), st.integers(1, 99)),
)
def test_counts_are_bounded_and_none_is_lost(one: dict[str, int], two: dict[str, int]) -> None:
    both = merged(one, two)
    assert sum(both.values()) == sum(one.values()) + sum(two.values())
    assert len(both) <= MAX_REASONS
    assert len(one.keys() | two.keys()) <= MAX_REASONS or OTHER in both
    if len(both) > 1:
        each = LedgerRange("e", "s", 1, sum(both.values()), Outcome.FILTERED, both)
        assert parse_reason(each.reason, each.numbers) == both
