import os
import shlex
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from pyspark.find_spark_home import _find_spark_home

from pipeline.operation import class_archive as archives
from pipeline.operation.class_archive import ClassArchive, class_archive
from pipeline.operation.preflight import find_java
from tests.support.table import table

SIZE = 1000


@pytest.fixture
def java(tmp_path: Path) -> Path:
    """Return a command that stands where a Java of Debian has its own, with the files of one."""
    home = tmp_path / "java"
    (home / "bin").mkdir(parents=True)
    (home / "lib" / "server").mkdir(parents=True)
    for name in ("bin/java", "lib/modules", "lib/server/libjvm.so", "lib/server/classes.jsa"):
        (home / name).write_text(name)
    return home / "bin" / "java"


@pytest.fixture
def cache(tmp_path: Path) -> Path:
    return tmp_path / "a cache"


def start(cache: Path, java: Path, *, write: bool = True) -> ClassArchive:
    return class_archive(cache, str(java), write=write)


def end(archive: ClassArchive, size: int = SIZE) -> None:
    """End as a Java does that writes so many bytes once its standard input is closed."""
    program = "import sys, pathlib; sys.stdin.read()"
    if size:
        program += f"; pathlib.Path(sys.argv[1]).write_bytes(bytes({size}))"
    arguments = [sys.executable, "-c", program, str(archive.written)]
    with subprocess.Popen(arguments, stdin=subprocess.PIPE) as java:
        archive.keep(java)


def file_of(cache: Path) -> Path:
    (file,) = cache.glob("*.jsa")
    return file


@pytest.mark.uncovered
def test_the_first_run_writes_what_later_ones_read(cache: Path, java: Path) -> None:
    first = start(cache, java)
    assert first.option.startswith(f'"-XX:ArchiveClassesAtExit={first.written}"')
    assert start(cache, java).log == "class archive: none (another run writes one)"
    end(first)
    second = start(cache, java)
    assert second.option.startswith(f'"-XX:SharedArchiveFile={file_of(cache)}"')
    assert second.written is None
    end(second, size=0)


@pytest.mark.uncovered
def test_a_service_reads_and_does_not_write(cache: Path, java: Path) -> None:
    assert start(cache, java, write=False).log == "class archive: none yet"
    end(start(cache, java))
    assert "SharedArchiveFile" in start(cache, java, write=False).option


def cut(file: Path) -> None:
    file.chmod(0o644)
    file.write_bytes(file.read_bytes()[:10])


def changed(file: Path) -> None:
    os.utime(file, (1, 1))


def without_note(file: Path) -> None:
    file.with_suffix(".json").write_text("{")


@pytest.mark.uncovered
@table("damage", [cut, changed, without_note])
def test_what_is_damaged_is_told_in_one_line_and_written_anew(
    cache: Path, java: Path, damage: Callable[[Path], None]
) -> None:
    if not cache.exists():
        end(start(cache, java))
    damage(file_of(cache))
    again = start(cache, java)
    assert again.log.endswith(", 1 are damaged or of another Java or Spark")
    end(again)
    assert "SharedArchiveFile" in start(cache, java).option


@pytest.mark.uncovered
def test_each_java_has_its_own_and_the_oldest_goes(cache: Path, java: Path) -> None:
    written: list[Path] = []
    for version in range(archives.KEPT + 1):
        (java.parents[1] / "lib" / "modules").write_text("." * version)
        end(start(cache, java))
        written += set(cache.glob("*.jsa")) - set(written)
        os.utime(written[-1], (version, version))
    assert len(written) == archives.KEPT + 1
    assert set(cache.glob("*.jsa")) == set(written[1:])
    assert {file.with_suffix(".jsa") for file in cache.glob("*.json")} == set(written[1:])


@pytest.mark.uncovered
def test_a_java_that_cannot_write_is_left_in_peace(cache: Path, java: Path) -> None:
    for _ in range(archives.TRIES):
        end(start(cache, java), size=0)
    assert start(cache, java).log == "class archive: none (3 runs could not write one)"


def test_an_archive_that_is_too_large_goes(
    cache: Path, java: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(archives, "LARGEST", SIZE - 1)
    end(start(cache, java))
    assert not list(cache.glob("*.jsa"))
    assert not list(cache.glob("*.new"))
    monkeypatch.setattr(archives, "LARGEST", 1 << 60)
    assert "bytes are free" in start(cache, java).log


def test_what_a_killed_run_left_is_cleared(cache: Path, java: Path) -> None:
    cache.mkdir()
    (cache / "spark-0000.new").write_text("half")
    end(start(cache, java))
    assert not list(cache.glob("*.new"))


def test_java_that_does_not_end_is_not_waited_for(
    cache: Path, java: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(archives, "SECONDS", 0.01)
    archive = start(cache, java)
    deaf = subprocess.Popen(["sleep", "60"], stdin=subprocess.PIPE)
    archive.keep(deaf)
    deaf.kill()
    deaf.wait()
    assert not list(cache.glob("*.jsa"))


def test_whoever_is_tired_of_waiting_may_interrupt(
    cache: Path, java: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupted(_self: object, _timeout: float) -> None:
        raise KeyboardInterrupt

    archive = start(cache, java)
    process = subprocess.Popen(["true"], stdin=subprocess.PIPE)
    with monkeypatch.context() as patch:
        patch.setattr(subprocess.Popen, "wait", interrupted)
        archive.keep(process)
    process.wait()
    assert not list(cache.glob("*.jsa"))
    end(start(cache, java))
    assert "SharedArchiveFile" in start(cache, java).option


def test_without_what_it_needs_java_starts_as_ever(
    cache: Path, java: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    none = ClassArchive(log="class archive: none")
    assert class_archive(None, str(java), write=True) == none
    assert class_archive(cache / "a:b", str(java), write=True) == none
    monkeypatch.setenv("JDK_JAVA_OPTIONS", "-Xshare:off")
    assert start(cache, java) == none
    monkeypatch.delenv("JDK_JAVA_OPTIONS")
    cache.write_text("a file")
    assert start(cache, java).option == ""
    assert "File exists" in start(cache, java).log
    (java.parents[1] / "lib" / "server" / "classes.jsa").unlink()
    assert start(cache, java) == none


@pytest.mark.uncovered
@pytest.mark.spark
def test_java_takes_sparks_classes_from_it(cache: Path) -> None:
    command = find_java()
    home = _find_spark_home()
    work = ["-cp", f"{home}/jars/*", "org.apache.spark.launcher.Main", "org.apache.spark.Any"]

    def run(archive: ClassArchive, *more: str) -> str:
        arguments = [command, *shlex.split(archive.option), *more, *work]
        environment = os.environ | {"SPARK_HOME": home}
        output = cache.parent / "output"
        with output.open("wb") as file:
            java = subprocess.Popen(arguments, env=environment, stdout=file, stdin=subprocess.PIPE)
        archive.keep(java)
        java.communicate()
        return output.read_text(errors="replace")

    run(class_archive(cache, command, write=True))
    said = run(class_archive(cache, command, write=True), "-Xlog:class+load")
    (loaded,) = [line for line in said.splitlines() if "org.apache.spark.launcher.Main " in line]
    assert "shared objects file (top)" in loaded
