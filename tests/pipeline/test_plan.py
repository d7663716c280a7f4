from collections.abc import Collection, Mapping

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline import plan
from pipeline.checkpoint import Commit, Range
from pipeline.errors import PipelineError
from pipeline.plan import Batch, Plan, make_plan, overlapping

ROWS = {"bronze": 2, "quarantine": 0, "silver": 1}
NONE = dict.fromkeys(ROWS, 0)


def commit(batch: int, files: dict[str, int], rows: Mapping[str, int] = ROWS) -> Commit:
    return Commit(batch, files, dict(rows), ())


def planned(
    commits: Collection[Commit] = (),
    found: Mapping[int, Mapping[str, int]] | None = None,
    files: Mapping[str, int] | None = None,
    origins: Mapping[int, set[str]] | None = None,
) -> Plan:
    by_batch = {commit.batch: commit for commit in commits}
    return make_plan(by_batch, found or {}, files or {}, (origins or {}).__getitem__)


def test_nothing_gives_nothing() -> None:
    assert planned() == Plan()


def test_new_files_make_the_next_batch() -> None:
    assert planned(files={"a": 1, "b": 2}) == Plan([Batch(1, {"a": 1, "b": 2})])
    after = planned([commit(4, {"a": 1})], {4: ROWS}, {"a": 1, "b": 2})
    assert after == Plan([Batch(5, {"b": 2})])


def test_what_was_committed_is_not_read_again_also_when_it_is_gone() -> None:
    assert planned([commit(1, {"a": 1, "b": 2})], {1: ROWS}, {"a": 1}) == Plan()


def test_a_name_with_another_size_is_another_file() -> None:
    assert planned([commit(1, {"a": 1})], {1: ROWS}, {"a": 9}) == Plan([Batch(2, {"a": 9})])


def test_a_commit_without_any_row_needs_no_folder() -> None:
    assert planned([commit(1, {"a": 1}, NONE)], {}, {"a": 1}) == Plan()


@pytest.mark.parametrize(
    "found", [NONE, ROWS | {"silver": 0}, ROWS | {"bronze": 3}, ROWS | {"bronze": -1}]
)
def test_a_commit_is_not_trusted_without_its_rows(found: dict[str, int]) -> None:
    again = planned([commit(1, {"a": 1})], {1: found}, {"a": 1, "b": 2})
    assert again == Plan([Batch(1, {"a": 1}), Batch(2, {"b": 2})])


def test_of_deleted_tables_comes_back_what_the_landing_folder_has() -> None:
    commits = [commit(1, {"a": 1, "gone": 1}), commit(2, {"gone too": 1})]
    assert planned(commits, {}, {"a": 1}) == Plan([Batch(1, {"a": 1})], forget=[2])


def test_rows_that_no_file_could_bring_back_are_not_touched() -> None:
    commits = [commit(1, {"a": 1, "gone": 1})]
    with pytest.raises(PipelineError, match=r"batch 1 .* 1 of its landing files .* gone\)"):
        planned(commits, {1: ROWS | {"silver": 0}}, {"a": 1})
    with pytest.raises(PipelineError, match="batch 1 of the tables differs"):
        planned([], {1: ROWS}, {"a": 1}, {1: {"a", "gone"}})


def test_rows_without_a_commit_are_taken_out_and_their_files_are_new() -> None:
    found = {1: ROWS, 2: {"bronze": 2}}
    again = planned([commit(1, {"a": 1})], found, {"a": 1, "b": 2}, {2: {"b"}})
    assert again == Plan([Batch(2, {"b": 2})], forget=[2])


def test_lost_checkpoints_give_the_same_rows_again() -> None:
    found = {1: ROWS, 2: ROWS}
    again = planned([], found, {"a": 1, "b": 2}, {1: {"a"}, 2: {"b"}})
    assert again == Plan([Batch(1, {"a": 1, "b": 2})], forget=[1, 2])


def test_a_batch_has_bounds(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(plan, "BATCH_BYTES_MAX", 10)
    monkeypatch.setattr(plan, "BATCH_FILES_MAX", 3)
    sizes = dict(zip("abcdefgh", (4, 6, 1, 99, 0, 0, 0, 0), strict=True))
    parts = [list(batch.files) for batch in planned(files=sizes).batches]
    assert parts == [["a", "b"], ["c"], ["d"], ["e", "f", "g"], ["h"]]


SPANS = st.builds(
    lambda stream, low, length: Range("barn", "00a1b2c3d4", stream, low, low + length),
    st.sampled_from("ab"),
    st.integers(1, 20),
    st.integers(0, 5),
)


@given(st.lists(SPANS, max_size=2, unique_by=lambda span: span.stream), st.lists(SPANS))
def test_batches_that_share_a_number_overlap(new: list[Range], old: list[Range]) -> None:
    def keys(span: Range) -> set[tuple[str, int]]:
        return {(span.stream, seq) for seq in range(span.seq_min, span.seq_max + 1)}

    commits = [Commit(batch, {}, {}, (span,)) for batch, span in enumerate(old, 1)]
    wanted = {key for span in new for key in keys(span)}
    expected = [batch for batch, span in enumerate(old, 1) if keys(span) & wanted]
    assert overlapping(new, commits) == expected


@pytest.mark.parametrize(
    ("low", "high", "meets"), [(1, 4, False), (1, 5, True), (7, 9, True), (8, 9, False)]
)
def test_ranges_overlap_if_they_share_their_first_or_last_number(
    low: int, high: int, meets: bool
) -> None:
    new = Range("barn", "00a1b2c3d4", "main", 5, 7)
    old = Commit(3, {}, {}, (Range("barn", "00a1b2c3d4", "main", low, high),))
    assert overlapping([new], [old]) == [3] * meets
