"""Change modules a little, one place at a time, and show which changes no test of theirs notices.

    tools/mutants.py [--since COMMIT] [--mutants N] [MODULE ...]

The modules are those named or, if none is, those that changed since COMMIT, if they have a test
file of their own. It runs first, then the rest of its folder. cosmic-ray makes the changes, in a
copy of the tree. Of
all changes N are tried, in MODULES_MAX modules at most, and the same ones by each run with the same
modules. Ends with `score: killed/tried`; what survived stands above it, as a difference.
"""

import argparse
import random
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path

from cosmic_ray.work_db import WorkDB, use_db
from cosmic_ray.work_item import TestOutcome, WorkerOutcome, WorkItem, WorkResult

ROOTS = ("gateway", "tui", "pipeline", "firmware")
COPIED = (*ROOTS, "tests", "examples", "docs", "systemd", "pyproject.toml", "setup.py")

TIMEOUT = 120.0
"""Seconds for the tests of one folder; a change that makes them hang counts as killed."""

MODULES_MAX = 20
"""Modules of one run: before the first change to each, its tests must pass."""

MISTAKES = re.compile(
    r"core/(ReplaceBinaryOperator_(Add_Sub|Sub_Add|Mul_Div|Div_Mul|FloorDiv_Mul|Mod_FloorDiv)"
    r"|ReplaceComparisonOperator_(?!.*_Is(Not)?$).*|ReplaceComparisonOperator_Is(Not)?_Is(Not)?"
    r"|ReplaceUnaryOperator_(USub_UAdd|Delete_Not)|Replace(True|False|And|Or|Break|Continue)With.*"
    r"|AddNot|NumberReplacer|ZeroIterationForLoop|ExceptionReplacer)"
)
"""Operators whose changes are mistakes that somebody could make: no shift for a sum."""

Change = tuple[str, str, int]
"""A session's name, the operator, and which of its places: the same in each run."""

CONFIG = """
[cosmic-ray]
module-path = {modules}
timeout = {timeout}
excluded-modules = []
test-command = "{python} -m pytest -q -x -p no:cacheprovider {tests}"
[cosmic-ray.distributor]
name = "local"
"""


def main() -> int:
    """Return 0 when the changes were tried, whatever became of them."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("modules", nargs="*", type=Path)
    parser.add_argument("--since", default="HEAD~30", help="the commit to compare with")
    parser.add_argument("--mutants", type=int, default=100, help="how many changes to try")
    options = parser.parse_args()
    tested = list(pairs(options.modules or changed(options.since)))
    if not tested:
        print("none of these modules has a test file of its own")
        return 0
    choice = random.Random(" ".join(str(module) for module, _ in tested))  # noqa: S311 - no secret
    tested = choice.sample(tested, min(len(tested), MODULES_MAX))
    with tempfile.TemporaryDirectory() as folder:
        tree = copied(Path(folder, "tree"))
        sessions = [prepared(tree, Path(folder), module, tests) for module, tests in tested]
        choose(sessions, options.mutants, choice)
        for session in sessions:
            command = [*COSMIC_RAY, "exec", session.with_suffix(".toml"), session]
            subprocess.run(command, cwd=tree, check=True)
        return report(sessions)


COSMIC_RAY = (sys.executable, "-m", "cosmic_ray.cli")


def changed(since: str) -> list[Path]:
    """Return the modules that changed since a commit and are still there."""
    command = ["git", "diff", "--name-only", "--diff-filter=d", since, "--", *ROOTS]
    names = subprocess.run(command, capture_output=True, text=True, check=True).stdout.split()
    return [Path(name) for name in names if name.endswith(".py")]


def pairs(modules: Sequence[Path]) -> Iterator[tuple[Path, str]]:
    """Yield each module that has a test file of its own, with what to run."""
    for module in modules:
        name = f"test_{module.name}"
        below = module.parent.parts[1:] if module.parts[0] == "gateway" else module.parent.parts
        for test in sorted(Path("tests", *below[:1]).rglob(name)):
            yield module, f"{test} {test.parent} --ignore-glob=*_model.py -m 'not uncovered'"
            break


def copied(tree: Path) -> Path:
    """Return a copy of what tests need: a change is never made in the checkout itself."""
    tree.mkdir()
    for name in COPIED:
        source = Path(name)
        if source.is_dir():
            shutil.copytree(source, tree / name, ignore=shutil.ignore_patterns("*.so"))
        else:
            shutil.copy(source, tree / name)
    return tree


def prepared(tree: Path, folder: Path, module: Path, tests: str) -> Path:
    """Return the session that lists every change of a module; its tests pass unchanged."""
    session = folder / f"{'.'.join(module.with_suffix('').parts)}.sqlite"
    config = session.with_suffix(".toml")
    config.write_text(
        CONFIG.format(modules=f'["{module}"]', timeout=TIMEOUT, python=sys.executable, tests=tests)
    )
    subprocess.run([*COSMIC_RAY, "baseline", config], cwd=tree, check=True)
    subprocess.run([*COSMIC_RAY, "init", config, session], cwd=tree, check=True)
    return session


def choose(sessions: Sequence[Path], count: int, choice: random.Random) -> None:
    """Leave `count` of all changes to be tried."""
    made: list[Change] = []
    for session in sessions:
        with use_db(session, WorkDB.Mode.open) as database:
            made += [change(session, item) for item in database.pending_work_items]
    wanted = sorted(each for each in made if MISTAKES.fullmatch(each[1]))
    tried = set(choice.sample(wanted, min(count, len(wanted))))
    skipped = WorkResult(worker_outcome=WorkerOutcome.SKIPPED, output="not chosen")
    for session in sessions:
        with use_db(session, WorkDB.Mode.open) as database:
            for item in list(database.pending_work_items):
                if change(session, item) not in tried:
                    database.set_result(item.job_id, skipped)
    print(f"{len(tried)} of {len(wanted)} changes in {len(sessions)} modules", flush=True)


def change(session: Path, item: WorkItem) -> Change:
    """Return what a piece of work changes."""
    (mutation,) = item.mutations
    return session.stem, mutation.operator_name, mutation.occurrence


def report(sessions: Sequence[Path]) -> int:
    """Print what survived, and how many of the changes did not."""
    killed = tried = 0
    for session in sessions:
        with use_db(session, WorkDB.Mode.open) as database:
            for _, result in database.completed_work_items:
                if result.worker_outcome is WorkerOutcome.SKIPPED:
                    continue
                tried += 1
                if result.test_outcome is TestOutcome.SURVIVED:
                    print(result.diff, "\n")
                else:
                    killed += 1
    print(f"score: {killed}/{tried}")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
