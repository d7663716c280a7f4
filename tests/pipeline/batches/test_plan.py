import pytest

from pipeline.batches.plan import Batch, Files, Plan, make_plan
from pipeline.errors import PipelineError
from pipeline.settings import BatchSize
from pipeline.tables.damage import Damaged
from pipeline.tables.state import Mark
from tests.support.table import table

A, B, GONE = "a", "b", "gone"


def marks(*names: str) -> dict[str, Mark]:
    return {name: Mark(1, 2) for name in names}


def damaged(number: int, *files: str, rows: bool = True, committed: bool = True) -> Damaged:
    return Damaged(number, frozenset(files), rows, committed)


# What is damaged, what is new, what is there; what is to be done after batch 4.
CASES = [
    ([], (), (A,), Plan()),
    ([], (A, B), (A, B), Plan([Batch(5, marks(A, B))])),
    ([], (B,), (A, B), Plan([Batch(5, marks(B))])),
    ([damaged(1, A)], (), (A,), Plan([Batch(1, marks(A), again=True)], [1])),
    (
        [damaged(1, A)],
        (A, B),
        (A, B),
        Plan([Batch(1, marks(A), again=True), Batch(5, marks(B))], [1]),
    ),
    ([damaged(1, A, GONE, rows=False)], (), (A,), Plan([Batch(1, marks(A), again=True)], [1])),
    ([damaged(2, GONE, rows=False)], (), (), Plan([], [2])),
    ([damaged(2, B, committed=False)], (), (A, B), Plan([Batch(5, marks(B))], [2])),
    (
        [damaged(2, B, committed=False), damaged(1, A, committed=False)],
        (A, B),
        (A, B),
        Plan([Batch(5, marks(A, B))], [1, 2]),
    ),
]


@table(("wrong", "new", "files", "expected"), CASES, ids=range(len(CASES)))
def test_the_plan(
    wrong: list[Damaged], new: tuple[str, ...], files: tuple[str, ...], expected: Plan
) -> None:
    assert make_plan(wrong, marks(*new), marks(*files), 4, BatchSize()) == expected


def test_rows_that_no_file_could_bring_back_are_not_touched() -> None:
    for committed in (True, False):
        wrong = [damaged(1, A, GONE, committed=committed)]
        with pytest.raises(PipelineError, match=r"batch 1 .* 1 of its landing files .* gone\)"):
            make_plan(wrong, {}, marks(A), 1, BatchSize())


def test_a_batch_has_bounds() -> None:
    sizes = zip("abcdefgh", (4, 6, 1, 99, 0, 0, 0, 0), strict=True)
    files = {name: Mark(size, 0) for name, size in sizes}
    plan = make_plan([], files, files, 0, BatchSize(10, 3))
    parts = [list(batch.files) for batch in plan.batches]
    assert parts == [["a", "b"], ["c"], ["d"], ["e", "f", "g"], ["h"]]


def test_clock_records_come_before_the_records_of_their_gateway() -> None:
    names = ["barn/00a.jsonl", "barn/clock/1.jsonl", "barn/e.jsonl", "barn/ledger/1.jsonl"]
    files = marks("a.jsonl", *names, "mill/0.jsonl")
    plan = make_plan([], files, files, 0, BatchSize(10, 2))
    assert [list(batch.files) for batch in plan.batches] == [
        ["a.jsonl", "barn/clock/1.jsonl"],
        ["barn/ledger/1.jsonl", "barn/00a.jsonl"],
        ["barn/e.jsonl", "mill/0.jsonl"],
    ]


def test_new_batches_are_divided_by_rows_when_they_are_the_next() -> None:
    wrong = [damaged(1, "z")]
    files = marks(*"abcdefz")
    plan = make_plan(wrong, marks(*"abcdef"), files, 4, BatchSize(files=4))
    rows = dict(zip("abcdefz", (4, 6, 1, 99, 0, 3, 50), strict=True))
    counted: list[list[str]] = []

    def count(named: Files) -> dict[str, int]:
        counted.append(list(named))
        return rows

    found = plan.each(count, 10)
    assert next(found) == Batch(1, marks("z"), again=True)
    assert counted == []
    assert next(found) == Batch(5, marks("a", "b"))
    assert counted == [[*"abcd"]]
    left = [(6, ["c"]), (7, ["d"]), (8, ["e", "f"])]
    assert [(each.number, list(each.files)) for each in found] == left
    assert counted == [[*"abcd"], [*"ef"]]
    assert len(plan.batches) == 5
