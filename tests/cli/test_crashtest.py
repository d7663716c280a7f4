import sys
from pathlib import Path

import pytest

from gateway.cli import crashtest
from gateway.cli.main import main


def test_where_it_is_not_installed_it_says_how_to_get_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(crashtest, "CHECKOUT", tmp_path)
    monkeypatch.setitem(sys.modules, "crashtest.command", None)
    before = list(sys.path)
    assert main(["crashtest", "--data", str(tmp_path)]) == 2
    assert "run `make install` and `PYTHONPATH=. .venv/bin/tidegate crashtest`" in (
        capsys.readouterr().err
    )
    assert sys.path == before
