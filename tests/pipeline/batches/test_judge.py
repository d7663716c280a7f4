"""Which rows silver leaves out."""

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline.batches import judge
from pipeline.batches.judge import ARRIVED, EARLIER, LEFT_OUT, left_out
from pipeline.tables.columns import arrow_schema

# Number, file, line, received, digest.
Row = tuple[int, str, int, int | None, bytes]
ROWS: list[Row] = [
    (1, "a", 1, 5, b"1"),  # alone
    (2, "a", 3, 5, b"2.3"),  # the lower line of a file is the first
    (2, "a", 2, 5, b"2.2"),
    (3, "a", 4, 9, b"3.4"),  # what was received before is the first
    (3, "b", 1, 8, b"3.1"),
    (4, "b", 2, None, b"4.2"),  # a time of receipt comes before none
    (4, "c", 1, 9, b"4.1"),
    (5, "b", 3, 7, b"5.3"),  # the name decides between equals
    (5, "c", 2, 7, b"5.1"),
    (6, "a", 5, 1, b"6"),  # an earlier batch comes before everything
    (6, "a", 6, 1, b"6.6"),
    (7, "a", 7, 1, b"7"),  # the same again is no conflict
    (7, "a", 8, 1, b"7"),
    (9, "a", 9, 1, b"9"),  # alone in its batch, but known
]
BEFORE: list[list[Row]] = [[(6, "z", 1, 0, b"6"), (8, "z", 2, 0, b"8")], [(9, "y", 3, 0, b"9.9")]]
EXPECTED = {
    ("a", 3): ("a", 2, True),
    ("a", 4): ("b", 1, True),
    ("b", 2): ("c", 1, True),
    ("c", 2): ("b", 3, True),
    ("a", 5): ("z", 1, False),
    ("a", 6): ("z", 1, True),
    ("a", 8): ("a", 7, False),
    ("a", 9): ("y", 3, True),
}


def table(rows: list[Row], columns: tuple[tuple[str, str], ...]) -> pa.Table:
    key: dict[str, object] = {"gateway_id": "barn", "epoch": "0123456789", "stream": "main"}
    fields = ("seq", "landing_file", "line", "received", "digest")
    schema = arrow_schema(columns)
    listed = [key | dict(zip(fields, row, strict=True)) for row in rows]
    return pa.Table.from_pylist(
        [{name: row[name] for name in schema.names} for row in listed], schema
    )


def judged(rows: list[Row], before: list[list[Row]]) -> dict[tuple[str, int], object]:
    found = left_out(table(rows, ARRIVED), (table(part, EARLIER) for part in before))
    assert found.schema == LEFT_OUT
    listed = [tuple(row.values()) for row in found.to_pylist()]
    assert len(listed) == len({row[:2] for row in listed})
    return {(row[0], row[1]): (row[3], row[4], row[5]) for row in listed}


@pytest.mark.parametrize("at_once", [1, 3, judge.AT_ONCE])
@pytest.mark.parametrize("order", [ROWS, ROWS[::-1]])
def test_the_first_row_of_each_key_stays(
    order: list[Row], at_once: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(judge, "AT_ONCE", at_once)
    assert judged(order, BEFORE) == EXPECTED


def test_nothing_is_left_out_where_no_key_comes_again() -> None:
    assert not judged(ROWS[:1], [BEFORE[0], []])
    assert not judged([], [])


def test_a_row_that_is_read_again_from_its_very_place_is_left_out() -> None:
    place = (1, "a", 1, 5, b"1")
    assert judged([place], [[place]]) == {("a", 1): ("a", 1, False)}
    assert judged([(*place[:4], b"2")], [[place]]) == {("a", 1): ("a", 1, True)}


@pytest.mark.uncovered
@given(
    st.lists(
        st.tuples(st.integers(1, 4), st.sampled_from("abc"), st.none() | st.integers(0, 2)),
        max_size=12,
    ),
    st.sets(st.integers(1, 4)),
)
def test_a_plain_reading_of_the_rule_agrees(
    given_rows: list[tuple[int, str, int | None]], known: set[int]
) -> None:
    rows: list[Row] = [
        (seq, file, line, received, b"%d" % (line % 2))
        for line, (seq, file, received) in enumerate(given_rows, 1)
    ]
    firsts: dict[int, Row] = {seq: (seq, "a", seq, 0, b"0") for seq in known}
    before = list(firsts.values())
    for row in sorted(rows, key=lambda row: (row[3] is None, row[3], row[1], row[2])):
        firsts.setdefault(row[0], row)
    expected = {
        (row[1], row[2]): (first[1], first[2], row[4] != first[4])
        for row in rows
        if (first := firsts[row[0]]) != row or row[0] in known
    }
    assert judged(rows, [before]) == expected
