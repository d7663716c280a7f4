from datetime import UTC, date, datetime
from pathlib import Path

import pytest

from pipeline.tables import delta, on_disk, state
from pipeline.tables.state import Commit, Mark, load, note_files, tidy, write_commit
from tests.support.pipeline_tables import table_rows

KEY = ("barn", "00a1b2c3d4", "main")
ROWS = {"bronze": 6, "quarantine": 1, "silver": 5}


@pytest.fixture
def root(tmp_path: Path) -> Path:
    on_disk.create(tmp_path / "tables")
    return tmp_path / "tables"


def commit(root: Path, batch: int, **files: int) -> None:
    note_files(root, batch, {f"{name}.jsonl": Mark(size, 7) for name, size in files.items()})
    days = ("2025-11-21",)
    write_commit(root, Commit(batch, len(files), ROWS, {"not_json": 1}, days, (KEY,), (KEY[:2],)))


def test_commits_add_up(root: Path) -> None:
    assert (load(root).last, load(root / "none").last) == (0, 0)
    commit(root, 1, a=120)
    by_steps = load(root)
    commit(root, 4, ä=3, b=1)
    by_steps.add(Commit(4, 2, ROWS, {"not_json": 1}))
    for found in (load(root), by_steps):
        assert (found.last, found.count, found.missing.tolist()) == (4, 2, [2, 3])
        assert [batch for batch in range(6) if found.knows(batch)] == [1, 4]
        assert found.rows == {"files": 3, "bronze": 12, "quarantine": 2, "silver": 10}
        assert found.reasons == {"not_json": 2}
    assert found.files_of([4, 9]) == {4: {"ä.jsonl", "b.jsonl"}}
    assert found.numbers_with("silver") == {1, 4}
    (row,) = found.since(1, ("dates", "streams", "epochs"))
    key = dict(zip(("gateway_id", "epoch", "stream"), KEY, strict=True))
    assert row == {"batch": 4, "dates": [date(2025, 11, 21)], "streams": [key], "epochs": [
        {name: key[name] for name in ("gateway_id", "epoch")}
    ]}  # fmt: skip
    assert [part["name"].to_pylist() for part in found.files_since(1)] == [["b.jsonl", "ä.jsonl"]]


def test_a_file_is_new_by_its_name_size_and_time_until_a_batch_counts(root: Path) -> None:
    commit(root, 1, a=120)
    note_files(root, 2, {"b.jsonl": Mark(1, 7)})  # of a run that is under way
    found = load(root)
    known = {"a.jsonl": Mark(120, 7)}
    other = {"a.jsonl": Mark(120, 8), "b.jsonl": Mark(1, 7), "c": Mark(0, 7)}
    assert found.new(known) == {}
    assert found.new(other | {"a.jsonl": Mark(121, 7)}) == other | {"a.jsonl": Mark(121, 7)}
    assert found.new(other) == other
    assert (found.knows_any(["a.jsonl"]), found.knows_any(["b.jsonl", "c"])) == (True, False)


def test_a_batch_can_be_forgotten(root: Path) -> None:
    commit(root, 1, a=1)
    commit(root, 2, b=1)
    found = load(root)
    found.compared = found.golden = 2
    found.note()
    state.note_settled(root, {"barn/": 9})
    found.forget([3])  # which never counted
    assert (load(root).compared, load(root).recount) == (2, False)
    assert state.settled(root) == {"barn/": 9}
    found.forget([1])
    for left in (found, load(root)):
        assert (left.missing.tolist(), left.last, left.reasons) == ([1], 2, {"not_json": 1})
        assert (left.compared, left.golden, left.recount) == (0, 0, True)
    assert state.settled(root) == {}


def test_how_far_other_tables_follow_is_noted(root: Path) -> None:
    commit(root, 1, a=1)
    found = load(root)
    assert (found.compared, found.made, found.corrected) == (0, None, ())
    found.compared, found.corrected, found.mapped = 1, ("2025-11-21",), "ä"
    found.made = datetime(2025, 11, 21, 1, tzinfo=UTC)
    found.note()
    commit(root, 2, b=1)
    tidy(root, many=2)
    again = load(root)
    assert (again.compared, again.golden, again.corrected) == (1, 0, ("2025-11-21",))
    assert (again.made, again.mapped, again.trimmed, again.last) == (found.made, "ä", False, 2)


def test_settled_folders_are_noted_as_they_change(root: Path) -> None:
    for changed in range(state.FILES_MANY + 3):
        state.note_settled(root, {"a/": changed, "b/": 1})
    assert state.settled(root) == {"a/": state.FILES_MANY + 2, "b/": 1}
    assert len(delta.files(root / "folders")) < state.FILES_MANY


def test_many_files_become_few_in_the_order_of_their_names(root: Path) -> None:
    for batch in range(1, 6):
        commit(root, batch, **{f"{name}{batch}": batch for name in "cab"})
    expected = {table: sorted(table_rows(root.parent, table), key=str) for table in state.CLUSTERED}
    tidy(root, many=6)
    assert len(delta.files(root / "files")) == 5
    tidy(root, many=5)
    for table, rows in expected.items():
        assert sorted(table_rows(root.parent, table), key=str) == rows
        assert len(delta.files(root / table)) <= 1
    names = [row["name"] for row in table_rows(root.parent, "files")]
    assert names == sorted(names)
    assert load(root).new({"c3.jsonl": Mark(3, 7), "c4.jsonl": Mark(3, 7)}) == {
        "c4.jsonl": Mark(3, 7)
    }
