"""What was measured, where and when, in one line of text."""

import datetime as dt
import os
import platform
import re
import subprocess
from collections.abc import Mapping
from importlib.metadata import version
from pathlib import Path

from bench.harness.brokers import mosquitto_program
from bench.harness.builds import ROOT
from bench.harness.errors import MeasurementError


def describe(trees: Mapping[str, Path] | None = None) -> str:
    """Return date, machine, its load and the versions, for the head of a table."""
    others = "".join(f"{label}{_commit(root)}, " for label, root in (trees or {}).items())
    today = dt.datetime.now(tz=dt.UTC).date()
    load = ", ".join(f"{value:.1f}" for value in os.getloadavg())
    return (
        f"{today}, {os.cpu_count()} cores of an {_processor()}, Linux {platform.release()}; "
        f"load of the last 1, 5 and 15 minutes at the end: {load}. "
        f"Tidegate {version('tidegate')}{_commit(ROOT)}, {others}"
        f"Python {platform.python_version()}, {_cython()}, {_mosquitto()}."
    )


def _processor() -> str:
    text = Path("/proc/cpuinfo").read_text(encoding="utf-8")
    found = re.search(r"^(?:model name|Model|Hardware)\s*:\s*(.+)$", text, re.MULTILINE)
    return found[1].strip() if found else platform.machine()


def _cython() -> str:
    try:
        return f"Cython {version('cython')}"
    except ModuleNotFoundError:
        return "no Cython"


def _mosquitto() -> str:
    try:
        command = [mosquitto_program(), "-h"]
    except MeasurementError:
        return "no Mosquitto"
    output = subprocess.run(command, capture_output=True, text=True, check=False).stdout
    found = re.search(r"version (\S+)", output)
    return f"Mosquitto {found[1] if found else 'of unknown version'}"


def _commit(root: Path) -> str:
    command = ["git", "-C", str(root), "rev-parse", "--short", "HEAD"]
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=False)
    except FileNotFoundError:
        return ""
    return f" ({done.stdout.strip()})" if done.returncode == 0 else ""
