"""The two builds of the gateway beside each other in `build/bench`, and the load generator."""

import compileall
import os
import shutil
import subprocess
import sys
from pathlib import Path

from bench.harness.errors import MeasurementError

ROOT = Path(__file__).parents[2]
BUILD = ROOT / "build" / "bench"
LOAD = ROOT / "bench" / "load"


def plain() -> Path:
    """Return a folder with the package as Python source alone, whatever is compiled in place."""
    return _copy(BUILD / "plain")


def compiled() -> Path:
    """Return a folder with the package and its compiled library, or raise MeasurementError."""
    modules = BUILD / "modules"  # kept, so that only what has changed is compiled
    command = [sys.executable, "setup.py", "--quiet", "build_ext"]
    command += ["--build-lib", str(modules), "--build-temp", str(BUILD / "temporary")]
    environment = {**os.environ, "TIDEGATE_CYTHON": "require"}
    done = subprocess.run(
        command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False
    )
    if done.returncode:
        lines = done.stderr.strip().splitlines() or ["no output"]
        raise MeasurementError(
            f"cannot compile (Cython, gcc and python3-dev are needed): {lines[-1]}"
        )
    folder = _copy(BUILD / "compiled")
    for library in (modules / "gateway").glob("_compiled.*.so"):
        shutil.copy2(library, folder / "gateway")
    return folder


def _copy(folder: Path) -> Path:
    shutil.rmtree(folder, ignore_errors=True)
    ignore = shutil.ignore_patterns("*.so", "__pycache__")
    shutil.copytree(ROOT / "gateway", folder / "gateway", ignore=ignore)
    compileall.compile_dir(folder, quiet=1)
    return folder


def generator() -> Path:
    """Return the load generator, compiled when a source is newer."""
    program = BUILD / "load"
    sources = sorted(LOAD.glob("*.[ch]"))
    newest = max(source.stat().st_mtime for source in sources)
    if program.exists() and program.stat().st_mtime >= newest:
        return program
    compiler = os.environ.get("CC", "cc")
    if shutil.which(compiler) is None:
        raise MeasurementError(f"the C compiler {compiler} is missing: sudo apt-get install -y gcc")
    BUILD.mkdir(parents=True, exist_ok=True)
    units = [str(source) for source in sources if source.suffix == ".c"]
    subprocess.run([compiler, "-O2", "-flto", "-o", str(program), *units], check=True)
    return program
