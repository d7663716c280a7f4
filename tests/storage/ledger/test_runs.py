from collections import defaultdict

from hypothesis import given
from hypothesis import strategies as st

from gateway.storage.ledger.runs import runs_of
from tests.support.storage import outbox_row


def test_streams_that_take_turns_do_not_break_runs() -> None:
    rows = [outbox_row(seq, stream) for seq in (4, 5, 7) for stream in ("main", "slow")]
    epoch = rows[0].epoch
    assert sorted(runs_of(rows)) == [
        (epoch, "main", 4, 5),
        (epoch, "main", 7, 7),
        (epoch, "slow", 4, 5),
        (epoch, "slow", 7, 7),
    ]


@given(st.lists(st.tuples(st.sampled_from("abc"), st.integers(1, 12)), unique=True))
def test_each_number_is_in_one_run_and_a_stream_keeps_its_order(
    numbers: list[tuple[str, int]],
) -> None:
    found: dict[str, list[int]] = defaultdict(list)
    for _, stream, first, last in runs_of(outbox_row(seq, stream) for stream, seq in numbers):
        found[stream].extend(range(first, last + 1))
    expected: dict[str, list[int]] = defaultdict(list)
    for stream, seq in numbers:
        expected[stream].append(seq)
    assert found == expected
