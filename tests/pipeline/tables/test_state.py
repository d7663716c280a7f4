import json
from pathlib import Path

import pytest

from pipeline.errors import PipelineError
from pipeline.tables import islands, state
from pipeline.tables.islands import Island
from pipeline.tables.state import Commit, Mark, fold, forget, load, write_commit

KEY = ("barn", "00a1b2c3d4", "main")


def commit(batch: int, first: int = 1, last: int = 5, **files: int) -> Commit:
    return Commit(
        batch=batch,
        files={f"{name}.jsonl": Mark(size, 7) for name, size in files.items()},
        rows={"bronze": 6, "quarantine": 1, "silver": 5},
        reasons={"not_json": 1},
        islands=(Island(*KEY, first, last, 10 * first, 10 * last),),
        dates=("2025-11-21",),
        streams=(KEY,),
        epochs=(KEY[:2],),
        quarantined=(("barn", "2025-11-21", "not_json", 1),),
    )


def test_commits_add_up(tmp_path: Path) -> None:
    assert load(tmp_path).last == 0
    write_commit(tmp_path, commit(1, 1, 5, a=120))
    write_commit(tmp_path, commit(4, 6, 9, ä=3))
    for loose in (2, 0):
        found = load(tmp_path)
        assert (found.last, len(found.loose), found.numbers()) == (4, loose, {1, 4})
        assert (found.rows("bronze"), found.rows("silver"), found.reasons) == (
            12,
            10,
            {"not_json": 2},
        )
        assert list(islands.each(found.islands)) == [Island(*KEY, 1, 9, 10, 90)]
        assert found.files_of(4) == {"ä.jsonl"}
        counted = {"gateway_id": "barn", "day": "2025-11-21", "reason": "not_json", "count": 1}
        assert found.quarantined.to_pylist() == [{"batch": 1} | counted, {"batch": 4} | counted]
        fold(tmp_path, found)
        assert not list(tmp_path.glob("[0-9]*.json"))


def test_a_file_is_new_by_its_name_size_and_time(tmp_path: Path) -> None:
    write_commit(tmp_path, commit(1, a=120))
    found = load(tmp_path)
    known = {"a.jsonl": Mark(120, 7)}
    other = {"a.jsonl": Mark(120, 8), "b.jsonl": Mark(120, 7), "c": Mark(0, 7)}
    assert found.new(known) == {}
    assert found.new(other | {"a.jsonl": Mark(121, 7)}) == other | {"a.jsonl": Mark(121, 7)}
    assert found.new(other) == other


def test_a_batch_can_be_forgotten(tmp_path: Path) -> None:
    write_commit(tmp_path, commit(1, a=1))
    write_commit(tmp_path, commit(2, 6, 9, b=1))
    forget(tmp_path, load(tmp_path), [1], islands.SCHEMA.empty_table())
    found = load(tmp_path)
    assert (found.numbers(), found.last, found.files_of(1)) == ({2}, 2, set())
    assert found.reasons == {"not_json": found.rows("quarantine")} == {"not_json": 1}


def test_a_kill_while_folding_does_no_harm(tmp_path: Path) -> None:
    write_commit(tmp_path, commit(1, a=1))
    left = (tmp_path / "0000000001.json").read_bytes()
    fold(tmp_path, load(tmp_path))
    (tmp_path / "0000000001.json").write_bytes(left)
    (tmp_path / "_staging-x").mkdir()
    found = load(tmp_path)
    assert (found.numbers(), found.rows("bronze")) == ({1}, 6)


def test_how_far_derived_tables_are_is_kept(tmp_path: Path) -> None:
    write_commit(tmp_path, commit(1, a=1))
    found = load(tmp_path)
    found.compared, found.corrected = 1, ("2025-11-21",)
    state.note_derived(tmp_path, found)
    assert load(tmp_path).corrected == ("2025-11-21",)
    assert (load(tmp_path).compared, load(tmp_path).golden) == (1, 0)
    assert state.since(load(tmp_path), 0) == [commit(1, a=1)]
    fold(tmp_path, found)
    assert (load(tmp_path).compared, load(tmp_path).golden) == (1, 0)
    assert state.since(load(tmp_path), 0) is None


@pytest.mark.parametrize(
    "content", [b"", b"{", b"[]", b"{}", b'{"version":2}', b'{"version":2,"batch":3}', b"\0" * 40]
)
def test_a_damaged_file_is_no_commit(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "0000000003.json").write_bytes(content)
    (tmp_path / "0000000004.tmp").write_text("{")
    assert load(tmp_path).numbers() == set()


def test_a_file_under_another_number_is_no_commit(tmp_path: Path) -> None:
    write_commit(tmp_path, commit(3))
    (tmp_path / "0000000003.json").rename(tmp_path / "0000000004.json")
    assert load(tmp_path).numbers() == set()


@pytest.mark.parametrize("version", [1, 3])
def test_another_version_stops_the_run(tmp_path: Path, version: int) -> None:
    (tmp_path / "0000000001.json").write_text(json.dumps({"version": version, "news": True}))
    with pytest.raises(PipelineError, match=rf"0000000001\.json has version {version}, .* knows 2"):
        load(tmp_path)
