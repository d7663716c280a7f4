"""Runs the fuzz targets one after the other: python fuzz/run.py SECONDS.

What they find interesting stays in build/fuzz/<target>; an input that breaks something is
written there as crash-..., and `python fuzz/<target>.py FILE` repeats it.
"""

import importlib.util
import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parent.parent
sys.path.insert(0, str(ROOT))

from fuzz.corpus import seeds_of_broker, seeds_of_decoder, seeds_of_where, write  # noqa: E402 - needs the path

FOLDER = ROOT / "build" / "fuzz"
SEEDS = {"decoder": seeds_of_decoder, "broker": seeds_of_broker, "where": seeds_of_where}
LONGEST_INPUT = 4096
"""Bytes of an input: enough for a CONNECT and some packets behind it."""


def main(seconds: int) -> int:
    """Return 0 if no target found anything, or if there is no atheris for this machine."""
    if importlib.util.find_spec("atheris") is None:
        print("atheris is not installed, and has no wheel for every machine: Hypothesis alone")
        return 0
    return max(run(target, seconds) for target in SEEDS)


def run(target: str, seconds: int) -> int:
    """Fuzz one target; return its exit status."""
    corpus = FOLDER / target
    write(SEEDS[target](), corpus)
    arguments = [
        str(corpus),
        f"-max_total_time={seconds}",
        f"-max_len={LONGEST_INPUT}",
        f"-artifact_prefix={FOLDER}/{target}-",
        "-timeout=10",
        "-print_final_stats=1",
    ]
    return subprocess.run(
        [sys.executable, str(ROOT / "fuzz" / f"{target}.py"), *arguments],
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        check=False,
    ).returncode


if __name__ == "__main__":
    sys.exit(main(int(sys.argv[1])))
