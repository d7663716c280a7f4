from pathlib import Path

import pytest

from pipeline.tables import staging


def fill(folder: Path) -> None:
    (folder / "inner").mkdir(parents=True)
    (folder / "inner" / "file").write_text("content")


def test_a_staged_folder_appears_under_its_name(tmp_path: Path) -> None:
    staged = staging.stage(tmp_path) / "part"
    fill(staged)
    staging.put_in_place(staged, tmp_path / "table" / "batch=1")
    assert (tmp_path / "table" / "batch=1" / "inner" / "file").read_text() == "content"
    assert not staged.exists()


def test_nothing_is_put_over_what_is_there(tmp_path: Path) -> None:
    staged = staging.stage(tmp_path) / "part"
    fill(staged)
    fill(tmp_path / "batch=1")
    with pytest.raises(OSError, match="not empty"):
        staging.put_in_place(staged, tmp_path / "batch=1")


def test_staging_folders_are_new_hidden_and_cleared(tmp_path: Path) -> None:
    first, second = staging.stage(tmp_path), staging.stage(tmp_path)
    assert first != second
    assert first.name.startswith("_")
    fill(first)
    (tmp_path / "table").mkdir()
    staging.clear(tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["table"]
