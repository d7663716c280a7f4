"""Ranges say of each number how it ended, joined or compacted."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.storage.ledger.range import (
    GRAVITY,
    MAX_REASONS,
    OTHER,
    SHORT_RUN,
    LedgerRange,
    collapsed,
    compacted,
    merged,
    parse_reason,
)
from gateway.storage.outbox.row import Outcome
from tests.support.table import table


def _range(
    first: int, last: int, outcome: Outcome = Outcome.FILTERED, reason: str = "0@a"
) -> LedgerRange:
    reasons = parse_reason(reason, last - first + 1)
    return LedgerRange("00a1b2c3d4", "main", first, last, outcome, reasons)


def _said(ranges: list[LedgerRange]) -> list[tuple[int, int, str, str]]:
    return [(each.first, each.last, each.outcome.value, each.reason) for each in ranges]


@table(
    ("ranges", "expected"),
    [
        ([_range(1, 3), _range(4, 9)], [(1, 9, "filtered", "0@a")]),
        ([_range(4, 9), _range(1, 3)], [(1, 9, "filtered", "0@a")]),
        ([_range(1, 3), _range(5, 9)], [(1, 3, "filtered", "0@a"), (5, 9, "filtered", "0@a")]),
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
            [(1, SHORT_RUN, "filtered", "0@a"), (SHORT_RUN + 1, SHORT_RUN + 1, "filtered", "1@b")],
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


@pytest.mark.uncovered
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


def _ranges(ends: list[tuple[int, int, Outcome, str]]) -> list[LedgerRange]:
    """Return ranges of these gaps before, numbers, outcomes and reasons, in order."""
    ranges, last = [], 0
    for gap, numbers, outcome, reason in ends:
        first, last = last + gap + 1, last + gap + numbers
        ranges.append(LedgerRange("00a1b2c3d4", "main", first, last, outcome, {reason: numbers}))
    return ranges


def test_neighbours_become_one_that_counts() -> None:
    ranges = _ranges(
        [
            (0, 9, Outcome.FILTERED, "0@a"),
            (0, 1, Outcome.EVICTED, "drop-oldest"),
            (0, 5, Outcome.FILTERED, "1@b"),
            (1, 1, Outcome.FILTERED, "0@a"),
            (0, 2, Outcome.DELIVERED, ""),
            (0, 1, Outcome.LOST, "a damaged database"),
            (0, 1, Outcome.LOST, "a damaged database"),
            (0, 3, Outcome.REJECTED, "0x87"),
            (0, 1, Outcome.REJECTED, "0x99"),
        ]
    )
    assert _said(compacted(ranges)) == [
        (1, 15, "evicted", "filtered*14 evicted*1"),
        (17, 19, "filtered", "delivered*2 filtered*1"),
        (20, 21, "lost", "a damaged database"),
        (22, 25, "rejected", "0x87*3 0x99*1"),
    ]


@given(
    st.lists(
        st.tuples(
            st.integers(0, 1),
            st.integers(1, 40),
            st.sampled_from(list(Outcome)),
            st.sampled_from(["0@a", "1@b", ""]),
        )
    )
)
def test_no_number_is_given_up(ends: list[tuple[int, int, Outcome, str]]) -> None:
    fine = _ranges(ends)
    outcomes = {
        number: each.outcome for each in fine for number in range(each.first, each.last + 1)
    }
    once = compacted(fine)
    assert len(once) <= 1 + sum(gap for gap, *_ in ends) + 2 * sum(
        outcome is Outcome.LOST for _, _, outcome, _ in ends
    )
    found = {}
    for each in once:
        numbers = range(each.first, each.last + 1)
        assert sum(each.reasons.values()) == len(numbers)
        assert parse_reason(each.reason, each.numbers) == each.reasons or "" in each.reasons
        of_these = {outcomes[number] for number in numbers}
        if Outcome.LOST in of_these or each.outcome is Outcome.LOST:
            assert of_these == {Outcome.LOST} == {each.outcome}
        else:
            assert each.outcome is max(of_these, key=GRAVITY.index)
        found.update(dict.fromkeys(numbers))
    assert found.keys() == outcomes.keys()
