"""How tests run beside each other: what is repeated, what must be there, what is measured."""

import shutil
import signal
import subprocess
import sys
from pathlib import Path
from typing import cast

import pytest

from tests.support import side_by_side
from tests.support.progress import Estimate
from tests.support.waiting import until
from tests.support.workers import units

ROOT = Path(__file__).parents[1]

PYPROJECT = """
[tool.pytest.ini_options]
addopts = "--import-mode=importlib -p no:xdist"
pythonpath = ["."]
markers = ["uncovered"]
[tool.coverage.run]
branch = true
source = ["gateway"]
patch = ["subprocess", "fork"]
disable_warnings = ["no-data-collected", "already-imported"]
"""

CODE = """
def core(number):
    return number // 2

def outside(number):
    return number // 2

def at_random(number):
    return number // 2
"""

TESTS = """
from pathlib import Path
from typing import cast

import pytest
from gateway import code

def nth_time(name):
    with Path(name).open("a+") as file:
        file.write("x")
        return file.tell()

@pytest.mark.parametrize("number", range({count}))
def test_upset(number):
    assert code.{called}(4) == 2
    assert nth_time(f"{folder}-{{number}}") > {failures}, "others are to blame"
"""

AGAIN = "FAILED ONCE, RUN ONCE MORE: tests/{}/test_few.py::test_upset[{}]"


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """Give a project with three folders of tests and this one's way to run them."""
    (tmp_path / "pyproject.toml").write_text(PYPROJECT)
    (tmp_path / "gateway").mkdir()
    (tmp_path / "gateway/__init__.py").touch()
    (tmp_path / "gateway/code.py").write_text(CODE)
    shutil.copytree(ROOT / "tests/support", tmp_path / "tests/support")
    shutil.copy(ROOT / "tests/conftest.py", tmp_path / "tests")
    add(tmp_path, "mqtt", "core")
    add(tmp_path, "crash", "outside")
    return tmp_path


def add(project: Path, folder: str, called: str, count: int = 1, failures: int = 0) -> None:
    """Have so many tests in a folder fail so often before they pass."""
    text = TESTS.format(folder=folder, called=called, count=count, failures=failures)
    (project / "tests" / folder).mkdir(exist_ok=True)
    (project / "tests" / folder / "test_few.py").write_text(text)


def run(project: Path, *more: str, wanted: str = "all") -> tuple[int, str]:
    """Return the status and the output of a run with two workers."""
    arguments = ["-q", "-n", "2", "--reruns", "1", *more]
    done = subprocess.run(
        [sys.executable, "-m", "coverage", "run", "--parallel-mode", "-m", "pytest", *arguments],
        cwd=project,
        env={"PATH": "/usr/bin:/bin", "HOME": str(project), "TIDEGATE_TESTS": wanted},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=200,
        check=False,
    )
    return done.returncode, done.stdout


def test_what_passes_in_its_second_run_is_told_and_lines_are_found_in_every_worker(
    project: Path,
) -> None:
    add(project, "server", "at_random", count=3, failures=1)
    status, output = run(project)
    assert status == 0
    assert {AGAIN.format("server", number) for number in range(3)} <= set(output.splitlines())
    coverage = [sys.executable, "-m", "coverage"]
    subprocess.run([*coverage, "combine", "--quiet"], cwd=project, check=True)
    report = [*coverage, "report", "--show-missing"]
    shown = subprocess.run(report, cwd=project, capture_output=True, text=True, check=True).stdout
    (line,) = (line for line in shown.splitlines() if line.startswith("gateway/code.py"))
    assert line.split()[-1] == "6"  # of `outside` alone


def test_what_fails_the_run(project: Path) -> None:
    add(project, "mqtt", "core", failures=1)
    add(project, "server", "core", count=2, failures=2)
    add(project, "uplink", "core", count=2, failures=1)
    status, output = run(project)
    assert status == 1
    assert "4 tests had a second run, and no more than 3" in output
    summary = output[output.index("short test summary") :]
    assert summary.count("FAILED tests/") == 3  # mqtt's at once, server's at the second
    for done in (each for each in project.glob("*-*") if each.is_file()):
        done.unlink()
    status, output = run(project, wanted="strict")
    assert status == 1
    assert "had a second run" not in output


DEADLY = """
import os, signal

def test_before(): pass

def test_that_kills_its_worker():
    os.kill(os.getpid(), signal.SIGKILL)

def test_behind(): pass
"""

ROWS = """
from pathlib import Path

def test_with_rows(subtests):
    with subtests.test("second time"):
        file = Path("times")
        file.write_text(file.read_text() + "x" if file.exists() else "x")
        assert file.read_text() == "xx"

def test_with_rows_that_fail(subtests):
    for number in range(3):
        with subtests.test(f"row {number}"):
            assert number == 1
"""

ENDLESS = """
import subprocess, time
from pathlib import Path

import pytest

@pytest.fixture
def started():
    with subprocess.Popen(["sleep", "300"]) as process:
        Path("process").write_text(str(process.pid))
        yield process
        process.kill()

def test_without_end(started):
    Path("begun").touch()
    time.sleep(300)
"""


def test_what_a_worker_tells(project: Path) -> None:
    (project / "tests/mqtt/test_deadly.py").write_text(DEADLY)
    (project / "tests/crash/test_rows.py").write_text(ROWS)
    status, output = run(project)
    assert status == 1
    assert "FAILED tests/mqtt/test_deadly.py::test_that_kills_its_worker" in output
    assert "the worker died of -9 in this test" in output
    assert "FAILED ONCE, RUN ONCE MORE: tests/crash/test_rows.py::test_with_rows" in output
    assert "second time" not in output
    assert [f"[row {number}]" in output for number in range(3)] == [True, False, True]
    assert "5 passed" in output
    assert "100 % · " in output


def assert_nothing_is_left(project: Path) -> None:
    """Find the process of the endless test ended, if it has begun."""
    if (project / "process").exists():
        assert not Path("/proc", (project / "process").read_text()).exists()


def test_it_ends_at_the_first_failure_if_it_is_told_to(project: Path) -> None:
    add(project, "mqtt", "core", failures=1)
    (project / "tests/crash/test_endless.py").write_text(ENDLESS)
    status, output = run(project, "-x")
    assert status == 1
    assert "stopping after 1 failures" in output
    assert_nothing_is_left(project)


def test_interrupted_it_leaves_no_worker(project: Path) -> None:
    (project / "tests/crash/test_endless.py").write_text(ENDLESS)
    command = [sys.executable, "-m", "pytest", "-q", "-n", "2"]
    with subprocess.Popen(command, cwd=project, stdout=subprocess.PIPE, text=True) as running:
        until((project / "begun").exists, "a worker has begun")
        running.send_signal(signal.SIGINT)
        output, _ = running.communicate(timeout=60)  # which ends once nobody can write to it
    assert running.returncode == 2
    assert "KeyboardInterrupt" in output
    assert_nothing_is_left(project)


def test_how_far_a_run_is_and_how_long_it_takes() -> None:
    estimate = Estimate(600.0, 2)
    assert (estimate.percent, estimate.whole(0.0)) == (0, 300.0)
    estimate.add(150.0)
    assert estimate.percent == 25
    assert estimate.whole(75.0) == 300.0, "as fast as usual"
    assert 500.0 < estimate.whole(150.0) < 600.0, "half as fast"


class Item:
    """What is asked of a test before it runs."""

    def __init__(self, nodeid: str, marker: str = "") -> None:
        self.nodeid = nodeid
        self._marker = marker

    def get_closest_marker(self, name: str) -> object:
        return name if name == self._marker else None


def test_a_worker_takes_what_belongs_together_then_what_is_slow_then_parts_of_a_file() -> None:
    many = [Item(f"tests/crash/test_many.py::test_{number}") for number in range(12)]
    slow = [Item(f"tests/mqtt/test_two.py::test_{number}", "slow") for number in range(2)]
    spark = [Item(f"tests/pipeline/test_{name}.py::test", "spark") for name in "ab"]
    dealt = units(cast("list[pytest.Item]", [*many, *slow, *spark]))
    assert dealt == [[14, 15], [12], [13], [0, 1, 2, 3, 4], [5, 6, 7, 8, 9], [10, 11]]


def test_the_folders_are_there() -> None:
    for name in (*side_by_side.DETERMINISTIC, *side_by_side.UNMEASURED, *side_by_side.SECONDS):
        assert (ROOT / "tests" / name).is_dir(), name
    for path in (*side_by_side.TIMED, *side_by_side.TOGETHER):
        assert (ROOT / path).exists(), path
