import shutil
import subprocess
import sys
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from types import ModuleType

import pytest

ROOT = Path(__file__).parents[1]

PYPROJECT = """
[tool.pytest.ini_options]
testpaths = ["tests"]
addopts = "--import-mode=importlib"
pythonpath = ["."]
markers = ["uncovered"]
[tool.coverage.run]
branch = true
source = ["gateway"]
"""

CORE = """
def half(number):
    return number // 2
"""

REST = """
from gateway import clock

def test_there_is_time():
    assert clock.TICKS
"""

TESTS = """
from pathlib import Path

import pytest
from gateway.mqtt.few import half

def nth_time(name):
    with Path(name).open("a+") as file:
        file.write("x")
        return file.tell()

@pytest.mark.parametrize("number", [pytest.param(4, id="4 - a::b[c]")])
def test_upset(number):
    print("what it prints")
    UPSET(one)
    assert half(number) == 2

@pytest.fixture
def upsetting():
    yield
    UPSET(two)

def test_upset_behind(upsetting):
    pass
"""

ONCE = 'assert nth_time("{name}") > 1, "others are to blame"'
ALWAYS = 'assert not nth_time("{name}"), "nobody else is to blame"'
SKIPPED = 'nth_time("{name}") == 1 or pytest.skip("not today"); assert nth_time("{name}") > 2'


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """Give a project with a core, another module, and this one's way to run tests."""
    for path, text in {
        "pyproject.toml": PYPROJECT,
        "gateway/__init__.py": "",
        "gateway/clock.py": "TICKS = True",
        "gateway/mqtt/__init__.py": "",
        "gateway/mqtt/few.py": CORE,
        "tests/test_rest.py": REST,
    }.items():
        file = tmp_path / path
        file.parent.mkdir(exist_ok=True)
        file.write_text(text)
    (tmp_path / "tests/server").mkdir()
    (tmp_path / "tools").mkdir()
    shutil.copy(ROOT / "tools/run_tests.py", tmp_path / "tools")
    shutil.copy(ROOT / "tests/conftest.py", tmp_path / "tests")
    shutil.copytree(ROOT / "tests/support", tmp_path / "tests/support")
    return tmp_path


def run(project: Path, what: str, wanted: str = "all") -> tuple[int, list[str]]:
    """Have this happen in one test and behind another; return status and lines of all."""
    text = TESTS
    for name in ("one", "two"):
        text = text.replace(f"UPSET({name})", what.format(name=name))
    (project / "tests/server/test_few.py").write_text(text)
    done = subprocess.run(
        [sys.executable, "tools/run_tests.py"],
        cwd=project,
        env={"PATH": "/usr/bin:/bin", "HOME": str(project), "TIDEGATE_TESTS": wanted},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=200,
        check=False,
    )
    return done.returncode, done.stdout.splitlines()


def test_what_fails_beside_others_and_passes_alone_is_told_at_the_end(project: Path) -> None:
    status, lines = run(project, ONCE)
    assert lines[-3:] == [
        "2 passed, and 2 in a second run",
        "FAILED BESIDE OTHERS, PASSED ALONE: tests/server/test_few.py::test_upset[4 - a::b[c]]",
        "FAILED BESIDE OTHERS, PASSED ALONE: tests/server/test_few.py::test_upset_behind",
    ]
    text = "\n".join(lines)
    assert text.index("E       AssertionError: others are to blame") < text.index("once more: ")
    assert lines.count("what it prints") == 2  # when it failed, and when it passed
    assert "TOTAL" in text  # the floors hold: what the second run reached counts
    assert status == 0


@pytest.mark.parametrize("what", [ALWAYS, SKIPPED], ids=["fails", "skipped"])
def test_what_does_not_pass_alone_fails(project: Path, what: str) -> None:
    status, lines = run(project, what)
    assert lines[-1] == "2 passed, failed: ['server']"
    assert any(line.startswith("alone, once more: ") for line in lines)
    assert status == 1


def test_there_is_no_second_run_where_none_is_wanted(project: Path) -> None:
    status, lines = run(project, ONCE, "strict")
    assert lines[-1] == "2 passed, failed: ['server']"
    assert not any(line.startswith("alone, once more: ") for line in lines)
    assert status == 1


@pytest.fixture(scope="module")
def tool() -> ModuleType:
    """Give tools/run_tests.py as a module."""
    spec = spec_from_file_location("run_tests", ROOT / "tools/run_tests.py")
    assert spec is not None
    assert spec.loader is not None
    module = sys.modules["run_tests"] = module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


A, B = "tests/server/test_few.py::test_a", "tests/conformance/test_time.py::test_in_time[x]"


@pytest.mark.parametrize(
    ("status", "failed", "reason"),
    [
        (1, [A, B, "tests/uplink/test_few.py::test_c"], ""),
        (1, [A, B, A + "2", A + "3"], "4 tests failed, and no more than 3"),
        (1, [A, "tests/mqtt/test_few.py::test_c"], "tests/mqtt/test_few.py::test_c asks no clock"),
        (1, ["tests/conformance/test_will.py::test_c"], "asks no clock"),
        (1, [A, "tests/server/test_few.py"], "tests/server/test_few.py could not be read"),
        (1, [], "server did not run to its end"),
        (2, [A], "server did not run to its end"),
    ],
)
def test_what_may_be_run_once_more(
    tool: ModuleType, status: int, failed: list[str], reason: str
) -> None:
    bad = tool.Run(tool.Job("server", [], covered=True), status, "", [], failed, 1.0)
    found = tool.why_not_again([bad])
    assert reason in found if reason else not found


def test_the_core_s_folders_are_there(tool: ModuleType) -> None:
    for name in (*tool.DETERMINISTIC, *tool.TIMED):
        folder, _, beginning = name.rpartition("/")
        assert list((ROOT / folder).glob(f"{beginning}*")), name
