"""How tests run beside each other: what is repeated, what must be there, what is measured."""

import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support import side_by_side

ROOT = Path(__file__).parents[1]

PYPROJECT = """
[tool.pytest.ini_options]
addopts = "--import-mode=importlib"
pythonpath = ["."]
markers = ["uncovered"]
[tool.coverage.run]
branch = true
source = ["gateway"]
patch = ["subprocess"]
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
import os
from pathlib import Path

import pytest
from gateway import code

def nth_time(name):
    Path(os.environ["PYTEST_XDIST_WORKER"]).write_text(str(os.nice(0)))
    Path(f"{{name.partition('-')[0]}}.worker").write_text(os.environ["PYTEST_XDIST_WORKER"])
    with Path(name).open("a+") as file:
        file.write("x")
        return file.tell()

@pytest.mark.parametrize("number", range({count}))
def test_upset(number):
    assert code.{called}(4) == 2
    assert nth_time(f"{folder}-{{number}}") > {failures}, "others are to blame"
"""

ENVIRONMENT = {"PATH": "/usr/bin:/bin", "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}
PLUGINS = ("-p", "xdist", "-p", "rerunfailures")
"""Those that are tested; the others take most of a start's time."""

AGAIN = "FAILED ONCE, RUN ONCE MORE: tests/{}/test_few.py::test_upset[{}]"


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """Give a project with three folders of tests and this one's way to run them."""
    (tmp_path / "pyproject.toml").write_text(PYPROJECT)
    (tmp_path / "gateway").mkdir()
    (tmp_path / "gateway/__init__.py").touch()
    (tmp_path / "gateway/code.py").write_text(CODE)
    (tmp_path / "gateway/never.py").write_text("def never():\n    return 1\n")
    shutil.copytree(ROOT / "tests/support", tmp_path / "tests/support")
    shutil.copy(ROOT / "tests/conftest.py", tmp_path / "tests")
    add(tmp_path, "mqtt", "core")
    add(tmp_path, "crash", "outside")
    return tmp_path


def add(project: Path, folder: str, called: str, count: int = 1, failures: int = 0) -> None:
    """Have so many tests in a folder fail so often before they pass."""
    text = TESTS.format(
        folder=folder.replace("/", "_"), called=called, count=count, failures=failures
    )
    (project / "tests" / folder).mkdir(parents=True, exist_ok=True)
    (project / "tests" / folder / "test_few.py").write_text(text)


def run(project: Path, *more: str, wanted: str = "all") -> tuple[int, str]:
    """Return the status and the output of a run with two workers."""
    arguments = ["-q", *PLUGINS, "-n", "2", "--reruns", "1", *more]
    done = subprocess.run(
        [sys.executable, "-m", "coverage", "run", "--parallel-mode", "-m", "pytest", *arguments],
        cwd=project,
        env=ENVIRONMENT | {"HOME": str(project), "TIDEGATE_TESTS": wanted},
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
    add(project, "pipeline/backtest", "core", count=9)
    status, output = run(project)
    assert status == 0
    assert (project / "pipeline_backtest.worker").read_text() == "gw0"
    first, other = (int((project / worker).read_text()) for worker in ("gw0", "gw1"))
    assert other == first + side_by_side.PATIENCE
    assert {AGAIN.format("server", number) for number in range(3)} <= set(output.splitlines())
    coverage = [sys.executable, "-m", "coverage"]
    shown = ""
    for words in (("combine", "--quiet"), ("report", "--show-missing")):
        shown = subprocess.run(
            [*coverage, *words],
            cwd=project,
            env=ENVIRONMENT,
            capture_output=True,
            text=True,
            check=True,
        ).stdout
    (line,) = (line for line in shown.splitlines() if line.startswith("gateway/code.py"))
    assert line.split()[-1] == "6"  # of `outside` alone
    assert re.search(r"gateway/never.py .* 50% ", shown)


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


def test_what_fails_the_run(project: Path) -> None:
    add(project, "mqtt", "core", failures=1)
    add(project, "server", "core", count=2, failures=2)
    add(project, "uplink", "core", count=2, failures=1)
    (project / "tests/crash/test_rows.py").write_text(ROWS)
    status, output = run(project)
    assert status == 1
    assert "6 tests had a second run, and no more than 3" in output
    assert "[100%]" in output
    assert [f"[row {number}]" in output for number in range(3)] == [True, False, True]
    assert "FAILED ONCE, RUN ONCE MORE: tests/crash/test_rows.py::test_with_rows" in output
    summary = output[output.index("short test summary") :]
    failed = re.findall(r"^FAILED tests/(\w+)/", summary, re.MULTILINE)
    assert sorted(failed) == ["crash", "mqtt", "server", "server"]  # mqtt's at once
    for done in (each for each in project.glob("*-*") if each.is_file()):
        done.unlink()
    status, output = run(project, wanted="strict")
    assert status == 1
    assert "had a second run" not in output


def test_all_that_share_a_java_have_one_worker() -> None:
    asking = re.compile(r'\b(spark: "SparkSession"|run: "?Run\b|session: "Callable\[\[\], Spark)')
    for file in (ROOT / "tests/pipeline").rglob("test_*.py"):
        path = file.relative_to(ROOT).as_posix()
        if asking.search(file.read_text()):
            assert path.startswith(tuple(each.split("::")[0] for each in side_by_side.SPARK)), path


@pytest.mark.parametrize("workers", [1, 2, 3, 6, 16])
def test_each_file_is_in_the_share_of_some_worker(workers: int) -> None:
    for file in (ROOT / "tests").rglob("test_*.py"):
        path = file.relative_to(ROOT).as_posix()
        having = [n for n in range(workers) if side_by_side.is_shared(path, n, workers)]
        assert having, path
        if path.startswith(side_by_side.WHOLE):
            whole = f"{side_by_side.WHOLE}test_statements.py"
            assert all(side_by_side.is_shared(whole, n, workers) for n in having), path
        if any(name.startswith(path) or path.startswith(name) for name in side_by_side.SPARK):
            assert 0 in having, path


def test_files_that_are_spread_have_no_fixture_in_common() -> None:
    for path in side_by_side.SPREAD:
        assert "scope=" not in (ROOT / path).read_text(), path


def test_the_folders_are_there() -> None:
    for name in (*side_by_side.DETERMINISTIC, *side_by_side.UNMEASURED):
        assert (ROOT / "tests" / name).is_dir(), name
    for path in (*side_by_side.TIMED, *side_by_side.LONG, *side_by_side.SPARK):
        assert (ROOT / path.split("::")[0]).exists(), path
