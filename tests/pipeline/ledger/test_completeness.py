from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline.ledger.accounts import Account
from pipeline.ledger.completeness import MISSING, NOT_REPORTED, UNRECORDED, compare
from pipeline.ledger.entry import OUTCOMES, Range
from pipeline.tables.islands import Island

KEY = ("barn", "e", "main")


def island(first: int, last: int) -> Island:
    return Island(*KEY, first, last, first * 10, last * 10)


RANGES = st.lists(
    st.tuples(st.integers(1, 30), st.integers(0, 9), st.sampled_from(OUTCOMES)), max_size=8
)


@pytest.mark.uncovered
@given(RANGES, st.sets(st.integers(1, 35)), st.none() | st.integers(0, 35))
def test_every_number_has_one_outcome(
    wanted: list[tuple[int, int, str]], came: set[int], ended: int | None
) -> None:
    """Beside a plain map of numbers."""
    account = Account(KEY, ended=ended)
    plain: dict[int, str] = {}
    for first, more, outcome in wanted:
        account.add(Range(first, first + more, outcome, "why"))
        for number in range(first, first + more + 1):
            plain.setdefault(number, outcome)
    stream = compare(account, [island(number, number) for number in sorted(came)])
    expected = Counter[str]()
    for number in range(1, max([0, *came, *plain]) + 1):
        untold = NOT_REPORTED if ended is None or number <= ended else UNRECORDED
        outcome = plain.get(number, untold)
        absent = MISSING if outcome == "delivered" else outcome
        expected["delivered" if number in came else absent] += 1
    assert +stream.outcomes == expected
    assert sum(stream.outcomes.values()) == stream.emitted
    spread = [n for gap in stream.gaps for n in range(gap.first, gap.last + 1)]
    assert spread == [n for n in range(1, stream.emitted + 1) if n not in came]


def test_a_gap_says_when_and_why() -> None:
    account = Account(KEY, last=12)
    account.add(Range(1, 6, "delivered", ""))
    account.add(Range(7, 8, "evicted", "drop-oldest"))
    found = compare(account, [island(1, 4), island(9, 9)])
    assert [tuple(gap)[3:] for gap in found.gaps] == [
        (5, 6, "missing", "", 40, 90),
        (7, 8, "evicted", "drop-oldest", 40, 90),
        (10, 12, "not_reported", "", 90, None),
    ]


def test_a_range_of_several_outcomes_adds_up_whatever_arrived() -> None:
    for came, expected in (
        ((), {"filtered": 5, "evicted": 2, "missing": 3}),
        ((island(1, 2), island(7, 7)), {"delivered": 3, "filtered": 5, "evicted": 2}),
        ((island(1, 9),), {"delivered": 9, "filtered": 1}),
    ):
        account = Account(KEY)
        account.add(Range(1, 10, "evicted", "delivered*3 filtered*5 evicted*2"))
        found = compare(account, came)
        assert +found.outcomes == expected
