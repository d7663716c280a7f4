"""Clock records to corrections of numbers."""

from pipeline.clock.record import ClockRecord
from pipeline.clock.spans import corrections
from tests.support.table import table

END = 2**63 - 1


def record(
    numbers: dict[str, tuple[int, int | None]],
    offset: int = 100,
    uncertainty: int | None = 70,
    uptime: int = 0,
    *,
    running: bool = False,
) -> ClockRecord:
    ends = None if running else uptime + 5_000
    return ClockRecord("e", offset, uncertainty, uptime, ends, numbers, "boot", uptime)


# Records in the order in which they came; by stream the numbers, the offset and its uncertainty.
CASES: list[tuple[list[ClockRecord], list[tuple[str, int, int, int, int]]]] = [
    ([], []),
    ([record({"main": (1, 57)})], [("main", 1, 57, 100, 70)]),
    # A stream that is absent: none in a span that has ended, all in one that runs.
    ([record({})], []),
    ([record({}, running=True)], [("main", 1, END, 100, 70)]),
    ([record({"main": (4, None)}, running=True)], [("main", 4, END, 100, 70)]),
    # Nobody knows; then somebody does.
    ([record({"main": (1, 9)}, 0, None)], []),
    ([record({"main": (1, 9)}, 0, None), record({"main": (1, 9)}, 5)], [("main", 1, 9, 5, 70)]),
    # The smallest uncertainty holds, and of equal ones the later.
    (
        [
            record({"main": (1, 9)}, 1, 50),
            record({"main": (1, 9)}, 2, 40),
            record({"main": (1, 9)}, 3, 60),
        ],
        [("main", 1, 9, 2, 40)],
    ),
    ([record({"main": (1, 9)}, 1, 0), record({"main": (1, 9)}, 2, 0)], [("main", 1, 9, 2, 0)]),
    # What was said while the span ran may be the best; how far it went is said at its end.
    ([record({}, 1, 5, running=True), record({"main": (1, 9)}, 2, 90)], [("main", 1, 9, 1, 5)]),
    # A span that ran ends where the next begins, in whatever order they came.
    (
        [record({"main": (8, None)}, 2, 1, 9_000, running=True), record({}, 1, 5, running=True)],
        [("main", 1, 7, 1, 5), ("main", 8, END, 2, 1)],
    ),
    (
        [record({"main": (1, 9)}, 1), record({"main": (10, 12), "slow": (1, 2)}, 2, uptime=9_000)],
        [("main", 1, 9, 1, 70), ("main", 10, 12, 2, 70), ("slow", 1, 2, 2, 70)],
    ),
]


@table(("records", "expected"), CASES, ids=range(len(CASES)))
def test_the_best_record_of_each_span_holds(
    records: list[ClockRecord], expected: list[tuple[str, int, int, int, int]]
) -> None:
    found = corrections(("barn", "e"), records, ["main"])
    assert [tuple(each)[2:] for each in found] == expected
