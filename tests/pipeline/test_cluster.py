"""The pipeline on a standalone cluster, one of whose two workers is killed on the way."""

import subprocess
import sys
from pathlib import Path

import pytest
from pyarrow.fs import FileSelector

from pipeline.place import Place, place_of
from pipeline.tables import delta
from tests.support.disk.landing_files import put_records, record
from tests.support.processes.spark_cluster import cluster
from tests.support.waiting import until

ROWS, FILES = 500, 8

CONFIG = """
landing = "{data}/landing"
tables = "{tables}"
master = "{master}"
[spark]
driver.host = "127.0.0.1"
driver.bindAddress = "127.0.0.1"
executor.memory = "512m"
executor.extraJavaOptions = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"
"""


@pytest.mark.spark
@pytest.mark.deep("make test-cluster", "TIDEGATE_CLUSTER")
@pytest.mark.parametrize("kind", ["folder", "s3"])
def test_a_worker_that_dies_costs_no_row(
    tmp_path: Path, kind: str, request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    base = place_of(tmp_path) if kind == "folder" else request.getfixturevalue("s3_place")
    tables = base / "tables"
    for file in range(FILES):
        first = 1 + file * ROWS
        put_records(tmp_path / "landing", [record(first + n) for n in range(ROWS)], first=first)
    config = tmp_path / "pipeline.toml"
    command = [sys.executable, "-m", "pipeline.cli", "once", "--config", str(config)]
    with cluster(tmp_path / "cluster", workers=2) as spark:
        config.write_text(CONFIG.format(data=tmp_path, tables=tables, master=spark.url))
        with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT) as once:
            spark.wait_for_executors()
            until(lambda: has_a_file(tables / "bronze"), "rows")
            spark.kill("worker0")
            assert once.poll() is None
            said = once.communicate(timeout=120)[0].decode()
    assert once.returncode == 0, said
    counts = [delta.read(tables / table).num_rows for table in ("bronze", "silver", "quarantine")]
    assert counts == [ROWS * FILES, ROWS * FILES, 0]
    days = delta.read(tables / "readings_1d")["count"].to_pylist()
    assert sum(days) == ROWS * FILES


def has_a_file(table: Place) -> bool:
    files = table.files.get_file_info(FileSelector(table.path(), allow_not_found=True))
    return any(each.path.endswith(".parquet") for each in files)
