"""What must be installed before Spark can start, checked before anything heavy is imported."""

import os
import shutil
from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path

from pipeline.errors import PipelineError

EXTRA = ("pyspark", "pyarrow", "pandas", "deltalake", "msgspec", "rich", "duckdb")
INSTALL_JAVA = "install openjdk-17-jre-headless (or openjdk-21-jre-headless)"


def check_installed() -> None:
    """Raise PipelineError, with what to type, unless the extra and a Java runtime are there."""
    check_python()
    find_java()


def check_python(needed: Sequence[str] | None = None) -> None:
    """Raise PipelineError, with what to type, unless the extra's packages are there."""
    missing = [name for name in needed or EXTRA if find_spec(name) is None]
    if missing:
        raise PipelineError(f"{', '.join(missing)} not installed: run `make install-pipeline`")


def check_arrow() -> None:
    """Raise PipelineError unless what a collector needs is there; it needs no Spark."""
    check_python(("pyarrow",))


def find_java() -> str:
    """Return the Java command that Spark will call; raises PipelineError without one."""
    home = os.environ.get("JAVA_HOME")
    if home:
        java = Path(home, "bin", "java")
        if not java.is_file():
            raise PipelineError(f"JAVA_HOME is {home}, but {java} is missing: {INSTALL_JAVA}")
        return str(java)
    found = shutil.which("java")
    if found is None:
        raise PipelineError(f"Spark needs a Java runtime and there is none: {INSTALL_JAVA}")
    return found
