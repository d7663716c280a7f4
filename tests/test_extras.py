"""What an error text tells somebody to install is what the extra of this project needs."""

import re
import shlex
import subprocess
import sys
import tomllib
from importlib import metadata
from pathlib import Path

import pytest

from gateway.extras import how_to_install
from tests.support.table import table

ROOT = Path(__file__).parents[1]
EXTRAS = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]


def name(requirement: str) -> str:
    return re.split(r"[\s<>=!~;\[]", requirement)[0]


@table("extra", EXTRAS)
def test_every_package_of_the_extra_is_named(extra: str) -> None:
    python, option, module, install, *packages = shlex.split(how_to_install(extra))
    assert (python, option, module, install) == (sys.executable, "-m", "pip", "install")
    assert [name(each) for each in packages] == [name(each) for each in EXTRAS[extra]]
    assert not [each for each in packages if "extra" in each]


def test_pip_takes_what_is_told() -> None:
    command = [*shlex.split(how_to_install("flash")), "--dry-run", "--no-index", "--quiet"]
    subprocess.run(command, check=True, timeout=60)


def test_where_nothing_is_installed_the_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    def missing(_: str) -> list[str]:
        raise metadata.PackageNotFoundError

    monkeypatch.setattr(metadata, "requires", missing)
    assert "packages of the extra serial" in how_to_install("serial")


def test_no_text_installs_tidegate_by_its_name() -> None:
    """An index may have somebody else's package under that name."""
    pattern = re.compile(r"(?:pipx?|uv(?: pip| tool)?) install [^\n]*\btidegate(?:\[|'|\"|\s|`|$)")
    texts = [
        path
        for folder in ("gateway", "tui", "pipeline", "docs", "systemd", "examples", "packaging")
        for path in (ROOT / folder).rglob("*")
        if path.suffix in {".py", ".md", ".toml", ".json", ".yml", ".yaml"}
    ]
    assert len(texts) > 500
    found = [str(path) for path in texts if pattern.search(path.read_text(encoding="utf-8"))]
    assert found == []
