"""The pipeline on a standalone cluster, one of whose two workers is killed on the way."""

import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.disk.landing_files import put_records, record
from tests.support.pipeline_tables import sizes, table_rows
from tests.support.processes.spark_cluster import cluster
from tests.support.waiting import until

ROWS, FILES = 500, 8

CONFIG = """
landing = "{data}/landing"
tables = "{data}/tables"
master = "{master}"
[spark]
driver.host = "127.0.0.1"
driver.bindAddress = "127.0.0.1"
executor.memory = "512m"
executor.extraJavaOptions = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"
"""


@pytest.mark.spark
@pytest.mark.deep("make test-cluster", "TIDEGATE_CLUSTER")
def test_a_worker_that_dies_costs_no_row(tmp_path: Path) -> None:
    for file in range(FILES):
        first = 1 + file * ROWS
        put_records(tmp_path / "landing", [record(first + n) for n in range(ROWS)], first=first)
    config = tmp_path / "pipeline.toml"
    command = [sys.executable, "-m", "pipeline.cli", "once", "--config", str(config)]
    with cluster(tmp_path / "cluster", workers=2) as spark:
        config.write_text(CONFIG.format(data=tmp_path, master=spark.url))
        with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT) as once:
            spark.wait_for_executors()
            until(lambda: any((tmp_path / "tables").glob("bronze/*.parquet")), "rows")
            spark.kill("worker0")
            assert once.poll() is None
            said = once.communicate(timeout=120)[0].decode()
    assert once.returncode == 0, said
    assert sizes(tmp_path) == (ROWS * FILES, ROWS * FILES, 0)
    assert sum(row["count"] for row in table_rows(tmp_path, "readings_1d")) == ROWS * FILES
