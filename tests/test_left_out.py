import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.requirements import NOT_ALLOWED, REQUIREMENTS

ROOT = Path(__file__).parents[1]

TESTS = """
import pytest

@pytest.mark.mosquitto
@pytest.mark.parametrize("number", range(3))
def test_with_mosquitto(number):
    pass

@pytest.mark.root
@pytest.mark.systemd
def test_with_systemd():
    pass

def test_here():
    pytest.skip("not on a Tuesday")

@pytest.mark.deep("make deep", "TIDEGATE_DEEP")
def test_for_hours():
    pass

def test_always():
    pass
"""


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """Give a project with a few tests and this one's way to leave some out."""
    (tmp_path / "tests").mkdir()
    (tmp_path / "tests/test_few.py").write_text(TESTS)
    shutil.copy(ROOT / "tests/conftest.py", tmp_path / "tests")
    shutil.copytree(ROOT / "tests/support", tmp_path / "tests/support")
    shutil.copy(ROOT / "pyproject.toml", tmp_path)
    return tmp_path


def run(project: Path, path: str, wanted: str = "", *more: str) -> tuple[int, list[str]]:
    """Run the project's tests with this PATH; return the status and the last lines."""
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", *more],
        cwd=project,
        env={"PATH": path, "HOME": str(project), "TIDEGATE_TESTS": wanted},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    return done.returncode, [line for line in done.stdout.splitlines() if "left out" in line]


def test_what_is_missing_is_told_once_with_the_way_to_get_it(project: Path) -> None:
    support = project / "tests/support/requirements.py"
    text = support.read_text()
    folders = 'SYSTEM_FOLDERS = "/nowhere"\n'
    lines = [
        folders if line.startswith("SYSTEM_FOLDERS") else line for line in text.splitlines(True)
    ]
    support.write_text("".join(lines))
    reported = [
        "mosquitto is missing: 3 tests left out; get it with: sudo apt-get install mosquitto",
        "not on a Tuesday: 1 test left out",
        "systemd-analyze is missing: 1 test left out; get it with: sudo apt-get install systemd",
        "with a target of its own: 1 test left out; run: make deep",
    ]
    assert run(project, "/nowhere") == (0, reported)
    demanded = "TIDEGATE_TESTS=all: nothing may be left out that can be installed"
    assert run(project, "/nowhere", "all", "-n", "2") == (1, [*reported, demanded])
    assert run(project, "/nowhere", "all", "-k", "test_for_hours") == (0, reported[-1:])


def test_what_a_machine_does_not_allow_is_told_apart() -> None:
    reason = REQUIREMENTS["mount"].reason
    assert reason == f"{NOT_ALLOWED} file systems to be mounted; try: sudo make test"


def test_every_requirement_says_how_to_get_it() -> None:
    for name, requirement in REQUIREMENTS.items():
        assert requirement.name
        assert requirement.get_it
        assert "\n" not in requirement.get_it
        if name != "nspawn":  # it boots a system, for which tests/systemd/test_booted.py asks
            assert isinstance(requirement.is_there(), bool)
