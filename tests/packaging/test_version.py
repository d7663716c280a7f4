"""The version of a checkout before, at and after the tag of a release."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


def git(tree: Path, *words: str) -> None:
    identity = ["-c", "user.name=a", "-c", "user.email=a@example.invalid"]
    subprocess.run(["git", "-C", str(tree), *identity, *words], check=True, capture_output=True)


def version(tree: Path) -> str:
    command = [sys.executable, "-m", "setuptools_scm"]
    return subprocess.check_output(command, cwd=tree, text=True).strip()


@pytest.fixture(scope="module")
def tree(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("release") / "tidegate"
    folder.mkdir()
    git(folder, "init", "--quiet")
    for name in ("pyproject.toml", "packaging/build.sh", "packaging/deb/control"):
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes((ROOT / name).read_bytes())
        (folder / name).chmod(0o755)
    git(folder, "add", ".")
    git(folder, "commit", "--quiet", "-m", "first")
    return folder


def test_it_is_the_tag_s_and_else_that_of_a_commit(tree: Path) -> None:
    assert version(tree).startswith("0.1.dev1+g")
    git(tree, "tag", "v0.1.0")
    assert version(tree) == "0.1.0"
    git(tree, "commit", "--quiet", "--allow-empty", "-m", "second")
    assert version(tree).startswith("0.1.1.dev1+g")


def test_a_release_has_a_maintainer(tree: Path, tmp_path: Path) -> None:
    git(tree, "tag", "--force", "v0.2.0")
    environment = {**os.environ, "PYTHON": sys.executable, "DIST": str(tmp_path)}
    for kind in ("wheel", "deb"):
        done = subprocess.run(
            [tree / "packaging/build.sh", kind],
            env=environment,
            capture_output=True,
            text=True,
            check=False,
        )
        assert (done.returncode, done.stdout) == (2, "")
        assert done.stderr.startswith("v0.2.0 has no maintainer: put a name")
