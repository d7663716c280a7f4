"""Disks without room, as small as it takes to be full at this or that step of a run."""

import re
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import duckdb
import pytest

from pipeline.cli import main
from pipeline.errors import JobError
from pipeline.operation.full_disk import full_disk
from pipeline.settings import make_settings
from pipeline.tables import delta, on_disk
from pipeline.tables.state import Commit, write_commit
from tests.support.disk.landing_files import put_records, reading, record
from tests.support.disk.small_disk import SmallDisk
from tests.support.pipeline_tables import contents

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

LARGE = 65_536
NO_SPACE = "java.io.IOException: No space left on device"
KILOBYTES = (16, 64, 96, 112)
"""Where tables, rows of bronze, silver, the ledger or a commit lack room in a small run."""
TOLD = re.compile(
    "tidegate-pipeline: no space on the disk of ([^ ,]+), which has [0-9,]+ bytes left: free some "
    "space and run this again; what was committed is complete\n"
)


@pytest.mark.uncovered
@pytest.mark.spark
@pytest.mark.mount
def test_a_full_disk_is_one_line_and_the_next_run_goes_on(
    tmp_path: Path,
    spark: "SparkSession",
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setattr("pipeline.commands.once._open_session", lambda _: spark)
    landing = tmp_path / "landing"
    put_records(landing, [*(record(n, reading(n)) for n in range(1, 400)), b"{"])

    def once(data: Path) -> tuple[int, str]:
        options = ["--landing", str(landing), "--tables", str(data / "tables")]
        status = main(["once", *options, "--no-gold", "--java-cache", "none"])
        return status, capsys.readouterr().err

    assert once(tmp_path) == (0, "")
    expected = contents(tmp_path)
    disk = SmallDisk(tmp_path / "small", 1)
    statuses = []
    for kilobytes in KILOBYTES:
        disk.mount()
        try:
            disk.resize(kilobytes)
            status, said = once(disk.folder)
            statuses.append(status)
            reported = TOLD.fullmatch(said)
            assert reported is None if status == 0 else reported is not None, said
            assert reported is None or disk.folder in Path(reported[1]).parents
            disk.resize(LARGE)
            assert once(disk.folder) == (0, "")
            assert contents(disk.folder) == expected
        finally:
            disk.unmount()
    assert set(statuses) <= {0, 1}
    assert statuses.count(1) > len(KILOBYTES) // 2, statuses


@pytest.mark.mount
def test_compaction_on_a_full_disk_leaves_the_tables_as_they_are(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    disk = SmallDisk(tmp_path / "small", 8)
    disk.mount()
    try:
        tables = disk.folder / "tables"
        on_disk.create(tables)
        rows = {"landing_file": "f", "line": 1, "received": 1}
        for batch in (1, 2):
            found = rows | {"batch": batch}
            delta.append(tables / "bronze", on_disk.TABLES["bronze"], [found], batch)
            counts = {"bronze": 1, "quarantine": 0, "silver": 0}
            write_commit(tables, Commit(batch, 1, counts))
        expected = contents(disk.folder)
        disk.fill()
        assert main(["compact", "--tables", str(tables)]) == 1
        assert TOLD.fullmatch(capsys.readouterr().err)
        assert contents(disk.folder) == expected
        disk.empty()
        assert main(["compact", "--tables", str(tables)]) == 0
        assert contents(disk.folder) == expected
        assert len(delta.files(tables / "bronze")) == 1
    finally:
        disk.unmount()


@pytest.mark.mount
def test_views_are_written_whole_or_not_at_all(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """DuckDB tells a full disk at the first byte, at a commit, and of its last ones nothing."""
    on_disk.create(tmp_path / "tables")
    disk = SmallDisk(tmp_path / "small", 1)
    file = disk.folder / "fleet.duckdb"
    for kilobytes in (4, 16, 64):
        disk.mount()
        try:
            disk.resize(kilobytes)
            assert main(["views", str(file), "--tables", str(tmp_path / "tables")]) == 1
            said = capsys.readouterr().err
            assert said.startswith(f"tidegate-pipeline: cannot write {file}: "), said
            assert "No space left on device" in said
            assert said.count("\n") == 1
            assert not list(disk.folder.iterdir())
            disk.resize(LARGE)
            assert main(["views", str(file), "--tables", str(tmp_path / "tables")]) == 0
            with duckdb.connect(str(file), read_only=True) as database:
                assert database.execute("SELECT count(*) FROM silver").fetchall() == [(0,)]
        finally:
            disk.unmount()


@pytest.mark.mount
def test_what_else_a_full_disk_refuses_is_named(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    disk = SmallDisk(tmp_path / "small", 1)
    disk.mount()
    try:
        metrics = disk.folder / "pipeline.prom"
        disk.fill()
        tables = ["--tables", str(tmp_path / "tables"), "--landing", str(tmp_path)]
        (tmp_path / "tables").mkdir()
        assert main(["status", *tables, "--metrics", str(metrics)]) == 1
        line = f"tidegate-pipeline: cannot write {metrics}: No space left on device\n"
        assert capsys.readouterr().err == line
        assert not metrics.exists()
    finally:
        disk.unmount()
    nowhere = str(tmp_path / "none" / "pipeline.prom")
    assert main(["status", *tables, "--metrics", nowhere]) == 2
    assert "none/.pipeline.prom.tmp: No such file or directory" in capsys.readouterr().err


def test_only_a_full_disk_is_told_as_one_and_spark_s_own_folder_may_be_it(tmp_path: Path) -> None:
    settings = make_settings(
        tmp_path / "landing", tmp_path / "tables", spark={"spark.local.dir": str(tmp_path / "x")}
    )
    with pytest.raises(OSError, match="odd"), full_disk(settings):
        raise OSError("odd")
    with pytest.raises(JobError, match=f"no space on the disk of {tmp_path}"), full_disk(settings):
        raise JobError(NO_SPACE)


def test_a_disk_of_a_cluster_s_worker_may_be_the_full_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings = make_settings(tmp_path / "landing", tmp_path / "tables", master="spark://m:7077")
    worker = "^no space on a disk of a Spark worker at spark://m:7077"
    with pytest.raises(JobError, match=worker), full_disk(settings):
        raise JobError(NO_SPACE)
    monkeypatch.setattr("pipeline.operation.full_disk.FULL", sys.maxsize)
    with pytest.raises(JobError, match=f"^no space on the disk of {tmp_path}"), full_disk(settings):
        raise JobError(NO_SPACE)
