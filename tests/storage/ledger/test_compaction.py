"""Compacted ranges cover the same numbers and say the worst of them."""

from hypothesis import given
from hypothesis import strategies as st

from gateway.storage.ledger.compaction import GRAVITY, compacted
from gateway.storage.ledger.range import LedgerRange, parse_reason
from gateway.storage.outbox.outcome import Outcome


def _ranges(ends: list[tuple[int, int, Outcome, str]]) -> list[LedgerRange]:
    """Return ranges of these gaps before, numbers, outcomes and reasons, in order."""
    ranges, last = [], 0
    for gap, numbers, outcome, reason in ends:
        first, last = last + gap + 1, last + gap + numbers
        ranges.append(LedgerRange("00a1b2c3d4", "main", first, last, outcome, {reason: numbers}))
    return ranges


def _said(ranges: list[LedgerRange]) -> list[tuple[int, int, str, str]]:
    return [(each.first, each.last, each.outcome.value, each.reason) for each in ranges]


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
