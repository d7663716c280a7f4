"""The two builds of the gateway beside each other in `build/bench`, and the load generator."""

import compileall
import os
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

from bench.harness.errors import MeasurementError

ROOT = Path(__file__).parents[2]
BUILD = ROOT / "build" / "bench"
LOAD = ROOT / "bench" / "load"


@dataclass(frozen=True)
class Tree:
    """A checkout whose gateway is measured, and the folder for its builds."""

    root: Path
    builds: Path


OWN = Tree(ROOT, BUILD)


def plain(tree: Tree = OWN) -> Path:
    """Return a folder with the package as Python source alone, whatever is compiled in place."""
    return _compile_bytes(_copy(tree, "plain"))


def compiled(tree: Tree = OWN) -> Path:
    """Return a folder with the package and its compiled library, or raise MeasurementError."""
    modules = tree.builds / "modules"  # kept, so that only what has changed is compiled
    source = _copy(tree, "source")
    for file in ("setup.py", "pyproject.toml"):
        shutil.copy2(tree.root / file, source)
    command = [sys.executable, "setup.py", "--quiet", "build_ext"]
    command += ["--build-lib", str(modules), "--build-temp", str(tree.builds / "temporary")]
    environment = {**os.environ, "TIDEGATE_CYTHON": "require"}
    done = subprocess.run(
        command, cwd=source, env=environment, capture_output=True, text=True, check=False
    )
    if done.returncode:
        lines = done.stderr.strip().splitlines() or ["no output"]
        raise MeasurementError(
            f"cannot compile (Cython, gcc and python3-dev are needed): {lines[-1]}"
        )
    folder = _copy(tree, "compiled")
    for library in (modules / "gateway").glob("_compiled.*.so"):
        shutil.copy2(library, folder / "gateway")
    return _compile_bytes(folder)


def _copy(tree: Tree, name: str) -> Path:
    """Return a folder with the package's sources as they are now, times included."""
    folder = tree.builds / name
    shutil.rmtree(folder / "gateway", ignore_errors=True)
    ignore = shutil.ignore_patterns("*.so", "__pycache__")
    shutil.copytree(tree.root / "gateway", folder / "gateway", ignore=ignore)
    return folder


def _compile_bytes(folder: Path) -> Path:
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
