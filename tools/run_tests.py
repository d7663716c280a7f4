"""Run the tests under coverage, hold the floors, and end with what was left out.

TIDEGATE_TESTS=all makes a missing requirement an error instead of a line at the end.
"""

import json
import os
import subprocess
import sys
from pathlib import Path

CORE = ("gateway/mqtt/*", "gateway/session/*", "gateway/routing/*", "gateway/broker/*")
CORE_FLOOR = 100
FLOOR = 90
LEFT_OUT = Path(".pytest_cache/left-out.json")


def main() -> int:
    """Return 0 if every test passed, every floor holds and nothing that must run was left out."""
    LEFT_OUT.unlink(missing_ok=True)
    coverage = [sys.executable, "-m", "coverage"]
    subprocess.run([*coverage, "erase"], check=True)
    tests = subprocess.run(
        [*coverage, "run", "--parallel-mode", "-m", "pytest", *sys.argv[1:]], check=False
    )
    left_out = json.loads(LEFT_OUT.read_text()) if LEFT_OUT.exists() else []
    floors = 0
    if tests.returncode == 0 and not left_out and not sys.argv[1:]:
        subprocess.run([*coverage, "combine", "--quiet"], check=True)
        floors = hold_floors(coverage)
    for line in left_out:
        print(line)
    demanded = os.environ.get("TIDEGATE_TESTS") == "all"
    if left_out and demanded:
        print("TIDEGATE_TESTS=all: nothing may be left out")
    return tests.returncode or floors or (1 if left_out and demanded else 0)


def hold_floors(coverage: list[str]) -> int:
    """Return 0 if the protocol core is covered whole and the rest as far as promised."""
    core = subprocess.run(
        [*coverage, "report", f"--fail-under={CORE_FLOOR}", f"--include={','.join(CORE)}"],
        check=False,
    )
    rest = subprocess.run(
        [*coverage, "report", f"--fail-under={FLOOR}", f"--omit={','.join(CORE)}"], check=False
    )
    return core.returncode or rest.returncode


if __name__ == "__main__":
    raise SystemExit(main())
