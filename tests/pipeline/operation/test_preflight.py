from pathlib import Path

import pytest

from pipeline.errors import PipelineError
from pipeline.operation import preflight


def test_a_wrong_java_home_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    with pytest.raises(PipelineError, match=r"JAVA_HOME is .*/bin/java is missing: install"):
        preflight.check_installed()


def test_java_home_comes_before_the_path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    java = tmp_path / "bin" / "java"
    java.parent.mkdir()
    java.write_text("")
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    assert preflight.find_java() == str(java)


def test_java_is_found_on_the_path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    java = tmp_path / "java"
    java.write_text("")
    java.chmod(0o755)
    monkeypatch.delenv("JAVA_HOME", raising=False)
    monkeypatch.setenv("PATH", str(tmp_path))
    assert preflight.find_java() == str(java)


def test_a_missing_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(preflight, "EXTRA", ("json", "no_such_module", "nor_this"))
    with pytest.raises(PipelineError, match=r"no_such_module, nor_this .* `make install-pipeline`"):
        preflight.check_installed()
