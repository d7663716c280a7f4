import os
from pathlib import Path

import pytest

from tests.support.compiled import not_compiled, stale


@pytest.fixture
def package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Give a package with a module that has a .pxd and a file that was compiled from it."""
    folder = tmp_path / "sample_of_a_package"
    folder.mkdir()
    monkeypatch.syspath_prepend(str(tmp_path))
    for name in ("__init__.py", "hot.py", "hot.pxd", "hot.cpython-311-aarch64-linux-gnu.so"):
        (folder / name).touch()
        os.utime(folder / name, (1_000, 1_000))
    return folder


def test_what_was_compiled_since_the_last_change_is_not_stale(package: Path) -> None:
    assert stale(package) == []


@pytest.mark.parametrize("source", ["hot.py", "hot.pxd"])
def test_what_is_older_than_its_source_is_stale(package: Path, source: str) -> None:
    os.utime(package / source, (1_001, 1_001))
    assert [path.name for path in stale(package)] == ["hot.cpython-311-aarch64-linux-gnu.so"]


@pytest.mark.parametrize("source", ["hot.py", "hot.pxd"])
def test_what_has_lost_its_source_is_stale(package: Path, source: str) -> None:
    (package / source).unlink()
    assert len(stale(package)) == 1


def test_a_module_that_loads_from_its_source_is_not_compiled(package: Path) -> None:
    (package / "hot.cpython-311-aarch64-linux-gnu.so").unlink()
    assert not_compiled(package) == ["sample_of_a_package.hot"]
