"""Java's archive of Spark's classes: one run writes it as it ends, later ones start faster by it.

It is a cache: whatever is wrong with it or its folder, Spark starts without it.
"""

import fcntl
import hashlib
import json
import os
import shutil
from pathlib import Path
from subprocess import Popen, TimeoutExpired
from typing import Any, NamedTuple

from pyspark.find_spark_home import _find_spark_home

KEPT = 3
"""Archives in a folder, one for each Java, Spark and place of Spark; the oldest go."""
LARGEST = 400 * 1024 * 1024
"""The bytes that an archive may have; 124 million are usual."""
TRIES = 3
"""Runs that try to write an archive; a Java that cannot is then left in peace."""
SECONDS = 60
"""How long the end of a run waits for Java to write; ten are usual."""
_OPTIONS = ("JDK_JAVA_OPTIONS", "JAVA_TOOL_OPTIONS", "_JAVA_OPTIONS")
_NOT_IN_PATHS = frozenset(':"\\')  # Java or Spark's launcher take them for something else


class ClassArchive(NamedTuple):
    """How a Java process starts, and what is to be done at its end."""

    option: str = ""
    """For Java; empty for a start without an archive."""
    log: str = ""
    """A line that says what is done and why."""
    written: Path | None = None
    """The file that Java writes as it ends; None if it writes none."""
    lock: int = -1

    def keep(self, java: "Popen[bytes]") -> None:
        """Let Java end and put what it wrote in place; this is the last use of the process."""
        if self.written is None:
            return
        try:
            if java.stdin is not None:
                java.stdin.close()  # by which Spark's Java knows that it shall end
            java.wait(SECONDS)
            _put_in_place(self.written)
        except (OSError, TimeoutExpired, KeyboardInterrupt):
            return  # the result was printed; the next run clears what is there
        finally:
            os.close(self.lock)


def class_archive(cache: Path | None, java: str, *, write: bool) -> ClassArchive:
    """Return how to start Java with the archive in this folder or, if it may, to write it."""
    if cache is None or not _can_archive(cache, java):
        return ClassArchive(log="class archive: none")
    try:
        cache.mkdir(parents=True, exist_ok=True)
        file = cache / f"spark-{_key(java)}.jsa"
        if _is_whole(file):
            option = f'"-XX:SharedArchiveFile={file}" -XX:+VerifySharedSpaces'
            return ClassArchive(option, f"class archive: {file}")
        return _to_write(cache, file) if write else ClassArchive(log="class archive: none yet")
    except OSError as error:
        return ClassArchive(log=f"class archive: none ({error})")


def _can_archive(cache: Path, java: str) -> bool:
    """Say whether this Java makes archives and was given no other one."""
    said = " ".join(os.environ.get(name, "") for name in _OPTIONS)
    own = "Archive" in said or "Xshare" in said
    base = _home(java) / "lib" / "server" / "classes.jsa"
    return base.is_file() and not own and not _NOT_IN_PATHS & set(str(cache))


def _home(java: str) -> Path:
    return Path(java).resolve().parents[1]


def _key(java: str) -> str:
    """Return a name for what an archive depends on: Java, and Spark's jars and their place."""
    home = _home(java)
    spark = Path(_find_spark_home()).resolve()
    parts = [home / "lib" / "modules", home / "lib" / "server" / "libjvm.so"]
    parts += sorted((spark / "jars").glob("*.jar"))
    facts = [str(home), str(spark), os.environ.get("SPARK_CONF_DIR", "")]
    for part in parts:
        found = part.stat()
        facts.append(f"{part.name} {found.st_size} {found.st_mtime_ns}")
    return hashlib.sha256("\n".join(facts).encode()).hexdigest()[:16]


def _is_whole(file: Path) -> bool:
    """Say whether an archive is as it was when it was put in place."""
    note = _read_note(file)
    return file.exists() and note == _note_of(file)


def _note_of(file: Path) -> dict[str, Any]:
    found = file.stat()
    return {"bytes": found.st_size, "mtime_ns": found.st_mtime_ns}


def _read_note(file: Path) -> object:
    try:
        return json.loads(file.with_suffix(".json").read_bytes())
    except (FileNotFoundError, ValueError):
        return None


def _to_write(cache: Path, file: Path) -> ClassArchive:
    """Return how Java writes the archive at its end, unless another one does or it never worked."""
    lock = os.open(cache, os.O_RDONLY)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        why = _why_not(cache, file)
    except BlockingIOError:
        why = "another run writes one"
    if why:
        os.close(lock)
        return ClassArchive(log=f"class archive: none ({why})")
    others = sum(1 for _ in cache.glob("*.jsa"))
    change = f", {others} are damaged or of another Java or Spark" if others else ""
    written = file.with_suffix(".new")
    option = f'"-XX:ArchiveClassesAtExit={written}" -Xlog:cds=off -Xlog:cds+dynamic=off'
    return ClassArchive(option, f"class archive: this run writes {file}{change}", written, lock)


def _why_not(cache: Path, file: Path) -> str:
    """Clear what ended runs left and count this try; returns why there shall be none."""
    for left in cache.glob("*.new"):
        left.unlink()
    if shutil.disk_usage(cache).free < 2 * LARGEST:
        return f"less than {2 * LARGEST:,} bytes are free"
    tries = _read_note(file)
    tried = tries if isinstance(tries, int) else 0
    if tried >= TRIES:
        return f"{TRIES} runs could not write one"
    file.with_suffix(".json").write_text(json.dumps(tried + 1))
    return ""


def _put_in_place(written: Path) -> None:
    """Make the archive one that later runs find, if it is not too large; the oldest go."""
    if written.stat().st_size > LARGEST:
        written.unlink()
        return
    file = written.with_suffix(".jsa")
    written.replace(file)
    file.with_suffix(".json").write_text(json.dumps(_note_of(file)))
    for older in sorted(file.parent.glob("*.jsa"), key=lambda each: each.stat().st_mtime)[:-KEPT]:
        older.unlink()
        older.with_suffix(".json").unlink(missing_ok=True)
