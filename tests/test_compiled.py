import os
import subprocess
import sys
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path

import pytest

from gateway.compiled import Library, load_from_library
from tests.support.compiled import GATEWAY, not_compiled, stale

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


@pytest.fixture
def finders(monkeypatch: pytest.MonkeyPatch) -> list[object]:
    """Give a copy of Python's finders, which this test alone changes."""
    copy: list[object] = list(sys.meta_path)
    monkeypatch.setattr(sys, "meta_path", copy)
    return copy


def test_without_a_library_python_imports_as_ever(finders: list[object], package: Path) -> None:
    before = finders.copy()
    load_from_library("sample_of_a_package.there_is_none", str(package))
    assert finders == before


def test_a_library_that_does_not_load_is_an_error(finders: list[object], package: Path) -> None:
    before = finders.copy()
    (package / "broken.py").write_text("raise ImportError('undefined symbol')")
    with pytest.raises(ImportError, match="undefined symbol"):
        load_from_library("sample_of_a_package.broken", str(package))
    assert finders == before


def test_what_is_in_the_library_alone_is_found_there(finders: list[object], package: Path) -> None:
    (package / "listed.py").write_text('"sample_of_a_package.hot sample_of_a_package.warm"')
    load_from_library("sample_of_a_package.listed", str(package))
    finder = finders[0]
    assert isinstance(finder, Library)
    assert finder.find_spec("sample_of_a_package.cold", None) is None
    spec = finder.find_spec("sample_of_a_package.hot", None)
    assert spec is not None
    assert (spec.name, spec.parent) == ("sample_of_a_package.hot", "sample_of_a_package")
    assert spec.origin == str(package / "listed.py")
    assert spec.has_location
    assert import_module("sample_of_a_package.cold").__file__ == str(package / "cold.py")


TWO_CHECKOUTS = """
import sys
from importlib.machinery import PathFinder

ours, others = sys.argv[1:]


class EditableInstall:
    @staticmethod
    def find_spec(name, path=None, target=None):
        return PathFinder.find_spec(name, [others + "/gateway"])


sys.path.insert(0, ours)
sys.meta_path.append(EditableInstall)
import gateway
from gateway.compiled import Library

libraries = [each for each in sys.meta_path if isinstance(each, Library)]
print(*(library.find_spec("gateway.hot").origin for library in libraries))
"""
"""A program beside which the library of another checkout can be imported as `gateway._compiled`."""


def loaded_from(ours: Path, others: Path) -> str:
    """Return where a gateway in `ours` finds `gateway.hot`; empty without a library."""
    command = [sys.executable, "-I", "-S", "-c", TWO_CHECKOUTS, str(ours), str(others)]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip()


def test_only_the_library_of_this_very_package_is_taken(tmp_path: Path) -> None:
    ours, others = tmp_path / "ours", tmp_path / "others"
    for checkout in (ours, others):
        (checkout / "gateway").mkdir(parents=True)
    for name in ("__init__.py", "compiled.py"):
        (ours / "gateway" / name).write_text((GATEWAY / name).read_text())
    (others / "gateway/_compiled.py").write_text('"gateway.hot"')
    assert loaded_from(ours, others) == ""
    (ours / "gateway/_compiled.py").write_text('"gateway.hot"')
    assert loaded_from(ours, others) == str(ours / "gateway/_compiled.py")
