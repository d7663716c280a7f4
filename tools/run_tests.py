"""Run the tests, hold the floors of coverage, and end with what was left out.

Each folder of tests is a run of its own, one more at a time than there are processors, since much
of what tests do is to wait; given arguments, there is one run, with these. TIDEGATE_TESTS=all makes
a missing requirement an error instead of a line at the end; what a machine does not allow, such as
to mount a file system, stays a line.

What failed beside other runs is run once more when they have ended, alone on the machine. Tests
that pass then are told of in the last lines, and do not fail the whole, unless TIDEGATE_TESTS is
`strict`, which is all that `all` is. There is no second run for more than MOST_REPEATED tests, nor
for what asks no clock and nobody else (DETERMINISTIC): that is a defect, whatever comes of it next.

To measure coverage takes more than half of the time of what is measured. So it is not measured
where it is not what is asked: in the folders of UNCOVERED, of tests with the marker `uncovered`,
and with TIDEGATE_CYTHON=require of nothing, since compiled modules have no lines.
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

UNCOVERED = frozenset(
    ("bench", "conformance", "contract", "crash", "end_to_end", "firmware", "fuzz", "systemd")
)
"""Folders whose tests look at programs as a whole, and reach no line that no other test does."""

MARKER = "uncovered"
"""On tests that try at random what others reach on purpose (pyproject.toml)."""

LONGEST = (
    "end_to_end",
    "server",
    "storage",
    "uplink",
    "pipeline",
    "routing",
    "crash",
    "conformance",
    "cli",
    MARKER,
    "tui",
    "broker",
    "systemd",
    "mqtt",
    "app",
    "session",
)
"""What to begin with, so that nothing long is left for the end."""

TESTS_FAILED, NO_TESTS = 1, 5
"""The statuses of pytest when it ran to its end, and when it found nothing to run."""

MOST_REPEATED = 3
"""Tests that may be run once more: a machine that is busy upsets few of them at a time."""

DETERMINISTIC = tuple(f"tests/{name}/" for name in ("mqtt", "session", "routing", "broker"))
DETERMINISTIC += ("tests/conformance/test_",)
"""How the names of tests begin that fail for a reason of their own."""

TIMED = ("tests/conformance/test_time.py", "tests/conformance/test_settings.py")
"""Those of them that wait for a gateway's clock."""

COVERAGE = [sys.executable, "-m", "coverage"]

SECONDS = 300
"""How long a test may take, unless it says otherwise: it has not got the machine to itself."""

PYTEST = ["-m", "pytest", "-p", "no:cacheprovider", f"--timeout={SECONDS}"]


@dataclass(frozen=True, slots=True)
class Job:
    """What pytest is to run, and whether its coverage is measured."""

    name: str
    arguments: list[str]
    covered: bool

    @property
    def command(self) -> list[str]:
        """The words with which to run it."""
        python = [*COVERAGE, "run", "--parallel-mode"] if self.covered else [sys.executable]
        return [*python, *PYTEST, *self.arguments]


@dataclass(frozen=True, slots=True)
class Run:
    """How a run of pytest ended; `failed` names tests, or files that could not be read."""

    job: Job
    status: int
    output: str
    left_out: list[str]
    failed: list[str]
    seconds: float

    @property
    def name(self) -> str:
        """What it was called."""
        return self.job.name

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
    compiled = os.environ.get("TIDEGATE_CYTHON") == "require"
    wanted = os.environ.get("TIDEGATE_TESTS", "")
    repeated: list[str] = []
    if sys.argv[1:]:
        runs = [run_tests(Job("tests", sys.argv[1:], not compiled), alone=True)]
    else:
        runs = run_all(jobs(covered=not compiled))
        if wanted != "strict":
            repeated = repeat_failed(runs)
    failed = [run.name for run in runs if run.status and not repeated]
    left_out = sorted({line for run in runs for line in run.left_out})
    missing = [line for line in left_out if not line.startswith(NOT_ALLOWED)]
    floors = 0
    if not (failed or missing or compiled or sys.argv[1:]):
        subprocess.run([*COVERAGE, "combine", "--quiet"], check=True)
        floors = hold_floors()
    for line in left_out:
        print(line)
    second = f", and {len(repeated)} in a second run" * bool(repeated)
    print(
        f"{sum(run.passed for run in runs)} passed{second}" + f", failed: {failed}" * bool(failed)
    )
    demanded = wanted in ("all", "strict")
    if missing and demanded:
        print(f"TIDEGATE_TESTS={wanted}: nothing may be left out that can be installed")
    for name in repeated:
        print(f"FAILED BESIDE OTHERS, PASSED ALONE: {name}")
    return bool(failed) or floors or (1 if missing and demanded else 0)


def jobs(*, covered: bool) -> list[Job]:
    """Return a job for each folder and one for the files beside them, the longest first."""
    files = sorted(Path("tests").rglob("test_*.py"))
    marked = [file for file in files if f"mark.{MARKER}" in file.read_text(encoding="utf-8")]
    names = {file.parts[1] for file in files if len(file.parts) > 2}
    divided = {file.parts[1] for file in marked}
    made = [
        Job(
            name,
            [f"tests/{name}", *(("-m", f"not {MARKER}") if name in divided else ())],
            covered and name not in UNCOVERED,
        )
        for name in names
    ]
    made.append(Job("the rest", [str(file) for file in files if len(file.parts) == 2], covered))
    made.append(Job(MARKER, [*map(str, marked), "-m", MARKER], covered=False))
    return sorted(made, key=lambda job: (_place(job.name), job.name))


def _place(name: str) -> int:
    return LONGEST.index(name) if name in LONGEST else len(LONGEST)


def run_all(made: Sequence[Job]) -> list[Run]:
    """Run these jobs, some at a time."""
    runs = []
    with ThreadPoolExecutor((os.cpu_count() or 1) + 1) as pool:
        for done in as_completed(pool.submit(run_tests, job, alone=False) for job in made):
            runs.append(done.result())
            runs[-1].show()
    return runs


def repeat_failed(runs: Sequence[Run]) -> list[str]:
    """Run what failed once more, one after the other; return the tests, if all pass now."""
    bad = [run for run in runs if run.status]
    if not bad:
        return []
    reason = why_not_again(bad)
    if reason:
        print(f"not run once more: {reason}", flush=True)
        return []
    names = []
    for run in bad:
        print(f"alone, once more: {', '.join(run.failed)}", flush=True)
        job = Job(run.name, [*run.failed, "-v", "-rA"], run.job.covered)
        again = run_tests(job, alone=True)
        if again.status or again.left_out:
            return []
        names += run.failed
    return names


def why_not_again(bad: Sequence[Run]) -> str:
    """Return why these failures are a defect, whatever came of a second run; "" if unknown."""
    names = [name for run in bad for name in run.failed]
    for run in bad:
        if run.status != TESTS_FAILED or not run.failed:
            return f"{run.name} did not run to its end"
    for name in names:
        if "::" not in name:
            return f"{name} could not be read"
        if name.startswith(DETERMINISTIC) and not name.startswith(TIMED):
            return f"{name} asks no clock and nobody else"
    if len(names) > MOST_REPEATED:
        return f"{len(names)} tests failed, and no more than {MOST_REPEATED} are put down to others"
    return ""


def run_tests(job: Job, *, alone: bool) -> Run:
    """Run pytest; show what it says at once if it is the only run."""
    begun = time.monotonic()
    with tempfile.TemporaryDirectory() as folder:
        files = {name: Path(folder, name) for name in ("TIDEGATE_LEFT_OUT", "TIDEGATE_FAILED")}
        done = subprocess.run(
            job.command,
            env={**os.environ, **{name: str(file) for name, file in files.items()}},
            stdout=None if alone else subprocess.PIPE,
            stderr=None if alone else subprocess.STDOUT,
            text=True,
            check=False,
        )
        left_out, failed = (
            json.loads(file.read_text()) if file.exists() else [] for file in files.values()
        )
    status = 0 if done.returncode == NO_TESTS and not alone else done.returncode
    seconds = time.monotonic() - begun
    return Run(job, status, done.stdout or "", left_out, failed, seconds)


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
