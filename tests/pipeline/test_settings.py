from pathlib import Path

import pytest

from pipeline.errors import PipelineError
from pipeline.settings import BatchSize, make_settings


@pytest.fixture(autouse=True)
def no_master(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("TIDEGATE_SPARK_MASTER", raising=False)


def test_the_defaults_are_what_the_demonstration_writes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    settings = make_settings()
    assert settings.landing.folder == tmp_path / "var" / "landing"
    assert settings.tables.folder == tmp_path / "var" / "tables"
    assert settings.checkpoints == tmp_path / "var" / "checkpoints" / "tables"
    assert settings.master == "local[*,3]"
    assert settings.local


def test_tables_side_by_side_have_their_own_checkpoints(tmp_path: Path) -> None:
    folders = [make_settings(tables=tmp_path / name).checkpoints for name in ("a", "b")]
    assert folders == [tmp_path / "checkpoints" / "a", tmp_path / "checkpoints" / "b"]


def test_a_link_to_the_tables_has_their_checkpoints(tmp_path: Path) -> None:
    (tmp_path / "disk" / "tables").mkdir(parents=True)
    (tmp_path / "link").symlink_to(tmp_path / "disk" / "tables")
    settings = make_settings(tables=tmp_path / "link")
    assert settings.checkpoints == tmp_path / "disk" / "checkpoints" / "tables"


def test_the_master_is_the_option_s_then_the_environment_s(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TIDEGATE_SPARK_MASTER", "spark://fleet:7077")
    assert make_settings().master == "spark://fleet:7077"
    assert not make_settings().local
    assert make_settings(master="local[2]").master == "local[2]"


def test_folders_are_no_urls_and_batches_have_a_size() -> None:
    with pytest.raises(PipelineError, match="s3:/fleet/tables is not s3://"):
        make_settings(tables=Path("s3://fleet/tables"))
    with pytest.raises(PipelineError, match="0 files in a batch are less than 1"):
        make_settings(batch=BatchSize(files=0))
