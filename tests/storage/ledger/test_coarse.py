"""Coarse ranges cover the same numbers and say the worst of them."""

from hypothesis import given
from hypothesis import strategies as st

from gateway.storage.ledger.coarse import GRAVITY, coarse
from gateway.storage.ledger.range import LedgerRange, parse_cause
from gateway.storage.outbox.fate import Fate


def _ranges(ends: list[tuple[int, int, Fate, str]]) -> list[LedgerRange]:
    """Return ranges of these gaps before, numbers, fates and causes, in order."""
    ranges, last = [], 0
    for gap, numbers, fate, cause in ends:
        first, last = last + gap + 1, last + gap + numbers
        ranges.append(LedgerRange("00a1b2c3d4", "main", first, last, fate, {cause: numbers}))
    return ranges


def _said(ranges: list[LedgerRange]) -> list[tuple[int, int, str, str]]:
    return [(each.first, each.last, each.fate.value, each.cause) for each in ranges]


def test_neighbours_become_one_that_counts() -> None:
    ranges = _ranges(
        [
            (0, 9, Fate.FILTERED, "0@a"),
            (0, 1, Fate.EVICTED, "drop-oldest"),
            (0, 5, Fate.FILTERED, "1@b"),
            (1, 1, Fate.FILTERED, "0@a"),
            (0, 2, Fate.DELIVERED, ""),
            (0, 1, Fate.LOST, "a damaged database"),
            (0, 1, Fate.LOST, "a damaged database"),
            (0, 3, Fate.REJECTED, "0x87"),
            (0, 1, Fate.REJECTED, "0x99"),
        ]
    )
    assert _said(coarse(ranges)) == [
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
            st.sampled_from(list(Fate)),
            st.sampled_from(["0@a", "1@b", ""]),
        )
    )
)
def test_no_number_is_given_up(ends: list[tuple[int, int, Fate, str]]) -> None:
    fine = _ranges(ends)
    fates = {number: each.fate for each in fine for number in range(each.first, each.last + 1)}
    once = coarse(fine)
    assert len(once) <= 1 + sum(gap for gap, *_ in ends) + 2 * sum(
        fate is Fate.LOST for _, _, fate, _ in ends
    )
    found = {}
    for each in once:
        numbers = range(each.first, each.last + 1)
        assert sum(each.causes.values()) == len(numbers)
        assert parse_cause(each.cause, each.numbers) == each.causes or "" in each.causes
        of_these = {fates[number] for number in numbers}
        if Fate.LOST in of_these or each.fate is Fate.LOST:
            assert of_these == {Fate.LOST} == {each.fate}
        else:
            assert each.fate is max(of_these, key=GRAVITY.index)
        found.update(dict.fromkeys(numbers))
    assert found.keys() == fates.keys()
