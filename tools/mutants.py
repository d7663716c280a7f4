"""Change modules a little, one place at a time, and show which changes no test of theirs notices.

    tools/mutants.py [--since COMMIT] [--mutants N] [MODULE ...]

The modules are those named or, if none is, those that changed since COMMIT; of each only with a
test file of its own, which is what runs. cosmic-ray makes the changes, in a copy of the tree. Of
all changes N are tried, in MODULES_MAX modules at most, and the same ones by each run with the same
modules. Ends with `score: killed/tried`; what survived stands above it, as a difference.
"""

import argparse
import random
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

TIMEOUT = 60.0
"""Seconds for the tests of one module; a change that makes them hang counts as killed."""

MODULES_MAX = 20
"""Modules of one run: each takes two seconds before its first change."""

MEANINGLESS = (
    "core/ReplaceBinaryOperator_BitOr_",  # most are the `|` of an annotation
    *(
        f"core/ReplaceComparisonOperator_{compared}_Is"
        for compared in ("Eq", "NotEq", "Lt", "LtE", "Gt", "GtE")
    ),  # the same for what Python keeps one object of
)
"""Operators whose changes are mostly none."""

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
        sessions = [prepared(tree, Path(folder), module, test) for module, test in tested]
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


def pairs(modules: Sequence[Path]) -> Iterator[tuple[Path, Path]]:
    """Yield each module that has a test file of its own, with that file."""
    for module in modules:
        name = f"test_{module.name}"
        below = module.parent.parts[1:] if module.parts[0] == "gateway" else module.parent.parts
        for test in sorted(Path("tests", *below[:1]).rglob(name)):
            yield module, test
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


def prepared(tree: Path, folder: Path, module: Path, test: Path) -> Path:
    """Return the session that lists every change of a module; its tests pass unchanged."""
    session = folder / f"{'.'.join(module.with_suffix('').parts)}.sqlite"
    config = session.with_suffix(".toml")
    config.write_text(
        CONFIG.format(modules=f'["{module}"]', timeout=TIMEOUT, python=sys.executable, tests=test)
    )
    subprocess.run([*COSMIC_RAY, "baseline", config], cwd=tree, check=True)
    subprocess.run([*COSMIC_RAY, "init", config, session], cwd=tree, check=True)
    return session


def choose(sessions: Sequence[Path], count: int, choice: random.Random) -> None:
    """Leave `count` of all changes to be tried."""
    made: list[tuple[Path, int]] = []
    for session in sessions:
        with use_db(session, WorkDB.Mode.open) as database:
            listed = enumerate(database.pending_work_items)
            made += [(session, index) for index, item in listed if is_meaningful(item)]
    tried = set(choice.sample(made, min(count, len(made))))
    skipped = WorkResult(worker_outcome=WorkerOutcome.SKIPPED, output="not chosen")
    for session in sessions:
        with use_db(session, WorkDB.Mode.open) as database:
            for index, item in enumerate(list(database.pending_work_items)):
                if (session, index) not in tried:
                    database.set_result(item.job_id, skipped)
    print(f"{len(tried)} of {len(made)} changes in {len(sessions)} modules", flush=True)


def is_meaningful(item: WorkItem) -> bool:
    """Return whether a change is one by what it does."""
    return not any(each.operator_name.startswith(MEANINGLESS) for each in item.mutations)


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
