import os
import sys
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path

import pytest

from gateway import compiled
from tests.support.compiled import not_compiled, stale

LIBRARY = "_compiled.cpython-311-aarch64-linux-gnu.so"


@pytest.fixture
def package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Give a package of two modules that have a .pxd, and a library that lists them."""
    folder = tmp_path / "sample_of_a_package"
    folder.mkdir()
    monkeypatch.syspath_prepend(str(tmp_path))
    for name in ("__init__.py", "cold.py", "hot.py", "hot.pxd", "warm.py", "warm.pxd", LIBRARY):
        (folder / name).touch()
    (folder / LIBRARY).write_bytes(b"\0sample_of_a_package.hot sample_of_a_package.warm\0")
    for path in folder.iterdir():
        os.utime(path, (1_000, 1_000))
    yield folder
    for name in [name for name in sys.modules if name.startswith(folder.name)]:
        del sys.modules[name]


def test_what_was_compiled_since_the_last_change_is_not_stale(package: Path) -> None:
    assert stale(package) == []


def test_a_change_of_a_module_that_is_not_compiled_makes_nothing_stale(package: Path) -> None:
    os.utime(package / "cold.py", (1_001, 1_001))
    assert stale(package) == []


@pytest.mark.parametrize("source", ["hot.py", "hot.pxd", "warm.py", "warm.pxd"])
def test_what_is_older_than_a_source_is_stale(package: Path, source: str) -> None:
    os.utime(package / source, (1_001, 1_001))
    assert [path.name for path in stale(package)] == [LIBRARY]


@pytest.mark.parametrize("source", ["hot.py", "hot.pxd"])
def test_what_has_lost_a_source_is_stale(package: Path, source: str) -> None:
    (package / source).unlink()
    assert len(stale(package)) == 1


def test_what_lacks_a_module_is_stale(package: Path) -> None:
    for name in ("new.py", "new.pxd"):
        (package / name).touch()
        os.utime(package / name, (1_000, 1_000))
    assert len(stale(package)) == 1


def test_a_library_of_one_module_is_stale(package: Path) -> None:
    (package / "hot.cpython-311-aarch64-linux-gnu.so").write_bytes(b"\0PyInit_hot\0")
    assert [path.name.partition(".")[0] for path in stale(package)] == ["hot"]


def test_a_module_that_loads_from_its_source_is_not_compiled(package: Path) -> None:
    assert not_compiled(package) == ["sample_of_a_package.hot", "sample_of_a_package.warm"]


def test_without_a_library_python_imports_as_ever(monkeypatch: pytest.MonkeyPatch) -> None:
    finders = list(sys.meta_path)
    monkeypatch.setattr(sys, "meta_path", finders.copy())
    monkeypatch.setattr(compiled, "LIBRARY", "gateway.there_is_none")
    compiled.load_from_library()
    assert sys.meta_path == finders


def test_a_library_that_does_not_load_is_an_error(
    package: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (package / "broken.py").write_text("raise ImportError('undefined symbol')")
    monkeypatch.setattr(compiled, "LIBRARY", "sample_of_a_package.broken")
    with pytest.raises(ImportError, match="undefined symbol"):
        compiled.load_from_library()


def test_what_is_in_the_library_alone_is_found_there(
    package: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (package / "listed.py").write_text('"sample_of_a_package.hot sample_of_a_package.warm"')
    monkeypatch.setattr(sys, "meta_path", sys.meta_path.copy())
    monkeypatch.setattr(compiled, "LIBRARY", "sample_of_a_package.listed")
    compiled.load_from_library()
    finder = sys.meta_path[0]
    assert finder.find_spec("sample_of_a_package.cold", None) is None
    spec = finder.find_spec("sample_of_a_package.hot", None)
    assert spec is not None
    assert (spec.name, spec.parent) == ("sample_of_a_package.hot", "sample_of_a_package")
    assert spec.origin == str(package / "listed.py")
    assert spec.has_location
    assert import_module("sample_of_a_package.cold").__file__ == str(package / "cold.py")
