"""Run the tests under coverage, hold the floors, and end with what was left out.

Each folder of tests is a run of its own, one more at a time than there are processors, since much
of what tests do is to wait; given arguments, there is one run, with these. TIDEGATE_TESTS=all makes
a missing requirement an error instead of a line at the end; what a machine does not allow, such as
to mount a file system, stays a line.
"""

import json
import os
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import dataclass
from pathlib import Path

CORE = ("gateway/mqtt/*", "gateway/session/*", "gateway/routing/*", "gateway/broker/*")
CORE_FLOOR = 100
FLOOR = 90
NOT_ALLOWED = "this machine does not allow"
"""How a line begins that no installation can do away with (tests/support/requirements.py)."""

LONGEST = (
    "end_to_end",
    "routing",
    "server",
    "uplink",
    "storage",
    "pipeline",
    "conformance",
    "tui",
    "crash",
)
"""Folders to begin with, so that no long one is left for the end."""

NO_TESTS = 5
"""The status of pytest when it found nothing to run."""

COVERAGE = [sys.executable, "-m", "coverage"]

PYTEST = [*COVERAGE, "run", "--parallel-mode", "-m", "pytest", "-p", "no:cacheprovider"]


@dataclass(frozen=True, slots=True)
class Run:
    """How a run of pytest ended."""

    name: str
    status: int
    output: str
    left_out: list[str]
    seconds: float

    @property
    def passed(self) -> int:
        """How many tests passed."""
        found = re.findall(r"(\d+) passed", self.output)
        return int(found[-1]) if found else 0

    def show(self) -> None:
        """Print a line, and everything where something failed."""
        if self.status:
            print(self.output)
        verdict = "FAILED" if self.status else f"{self.passed} passed"
        print(f"{self.name}: {verdict} in {self.seconds:.0f} s", flush=True)


def main() -> int:
    """Return 0 if every test passed, every floor holds and nothing that must run was left out."""
    subprocess.run([*COVERAGE, "erase"], check=True)
    runs = run_folders() if not sys.argv[1:] else [run_tests(sys.argv[1:], "tests")]
    failed = [run.name for run in runs if run.status]
    left_out = sorted({line for run in runs for line in run.left_out})
    missing = [line for line in left_out if not line.startswith(NOT_ALLOWED)]
    floors = 0
    if not failed and not missing and not sys.argv[1:]:
        subprocess.run([*COVERAGE, "combine", "--quiet"], check=True)
        floors = hold_floors()
    for line in left_out:
        print(line)
    print(f"{sum(run.passed for run in runs)} passed" + f", failed: {failed}" * bool(failed))
    demanded = os.environ.get("TIDEGATE_TESTS") == "all"
    if missing and demanded:
        print("TIDEGATE_TESTS=all: nothing may be left out that can be installed")
    return bool(failed) or floors or (1 if missing and demanded else 0)


def run_folders() -> list[Run]:
    """Run every folder, and the files beside them, some at a time."""
    folders = [path.name for path in Path("tests").iterdir() if any(path.rglob("test_*.py"))]
    folders = [name for name in folders if Path("tests", name).is_dir()]
    order = sorted(folders, key=lambda name: (*_place(name), name))
    jobs = [([f"tests/{name}"], name) for name in order]
    jobs.append((sorted(map(str, Path("tests").glob("test_*.py"))), "the rest"))
    with ThreadPoolExecutor((os.cpu_count() or 1) + 1) as pool:
        runs = []
        for done in as_completed(pool.submit(run_tests, *job) for job in jobs):
            runs.append(done.result())
            runs[-1].show()
    return runs


def _place(name: str) -> tuple[int]:
    return (LONGEST.index(name) if name in LONGEST else len(LONGEST),)


def run_tests(arguments: Sequence[str], name: str) -> Run:
    """Run pytest with these arguments; show what it says at once if it is the only run."""
    alone = arguments == sys.argv[1:]
    begun = time.monotonic()
    with tempfile.TemporaryDirectory() as folder:
        left_out = Path(folder, "left-out.json")
        done = subprocess.run(
            [*PYTEST, *arguments],
            env={**os.environ, "TIDEGATE_LEFT_OUT": str(left_out)},
            stdout=None if alone else subprocess.PIPE,
            stderr=None if alone else subprocess.STDOUT,
            text=True,
            check=False,
        )
        lines = json.loads(left_out.read_text()) if left_out.exists() else []
    status = 0 if done.returncode == NO_TESTS and not alone else done.returncode
    return Run(name, status, done.stdout or "", lines, time.monotonic() - begun)


def hold_floors() -> int:
    """Return 0 if the protocol core is covered whole and the rest as far as promised."""
    core = subprocess.run(
        [*COVERAGE, "report", f"--fail-under={CORE_FLOOR}", f"--include={','.join(CORE)}"],
        check=False,
    )
    rest = subprocess.run(
        [*COVERAGE, "report", f"--fail-under={FLOOR}", f"--omit={','.join(CORE)}"], check=False
    )
    return core.returncode or rest.returncode


if __name__ == "__main__":
    raise SystemExit(main())
