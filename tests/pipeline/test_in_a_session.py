"""Runs in a Spark session that somebody else configured."""

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from pyspark.errors import PySparkAttributeError

import tidegate_pipeline
from pipeline.errors import PipelineError
from tests.support.disk.landing_files import TIME, put_records, reading, record
from tests.support.pipeline_tables import contents, sizes, table_rows

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from pipeline.operation.once import Totals

    Run = Callable[..., Totals]

pytestmark = pytest.mark.spark

DAY = 86_400_000
FILES = "path string, modificationTime timestamp, length bigint, content binary"
"""What Spark's source of whole files gives; of which only the path is asked for."""

OTHER = {
    "spark.sql.session.timeZone": "America/Los_Angeles",
    "spark.sql.ansi.enabled": "false",
    "spark.sql.caseSensitive": "true",
    "spark.sql.files.ignoreCorruptFiles": "true",
    "spark.sql.parquet.outputTimestampType": "INT96",
    "spark.sql.execution.arrow.pyspark.enabled": "false",
    "spark.sql.shuffle.partitions": "3",
}
"""What a session may have that gives other rows, or files of another form."""


def land(data: Path) -> None:
    """Put records of two days, a duplicate, a conflict, and a line that is no record."""
    late = record(3, reading(time=TIME + DAY), time=TIME + DAY)
    put_records(data / "landing", [record(1), record(2), record(2), late, b"{"])
    put_records(data / "landing", [record(2, content=b"z")], first=2)


@pytest.fixture
def theirs(spark: "SparkSession") -> "SparkSession":
    other = spark.newSession()
    for name, value in OTHER.items():
        other.conf.set(name, value)
    return other


def test_rows_are_the_same_whatever_the_session_has(
    tmp_path: Path, run: "Run", theirs: "SparkSession"
) -> None:
    for folder in ("own", "theirs"):
        land(tmp_path / folder)
    run(tmp_path / "own", gold=True)
    data = tmp_path / "theirs"
    totals = tidegate_pipeline.run(theirs, data / "landing", str(data / "tables"))
    assert (totals.bronze, totals.silver, totals.quarantined) == (5, 3, 2)
    assert contents(data) == contents(tmp_path / "own")
    assert table_rows(data, "readings_1d") == table_rows(tmp_path / "own", "readings_1d")
    assert {name: theirs.conf.get(name) for name in OTHER} == OTHER
    again = tidegate_pipeline.run(theirs, data / "landing", data / "tables", verify=True)
    assert (again.files, again.doubled, sizes(data)) == (0, None, (5, 3, 2))


def test_a_stream_that_finds_new_files_starts_runs(tmp_path: Path, theirs: "SparkSession") -> None:
    """As docs/use/pipeline-platforms.md has it."""
    landing, tables = tmp_path / "landing", tmp_path / "tables"

    def read(_rows: "DataFrame", _batch: int) -> None:
        tidegate_pipeline.run(theirs, landing, tables)

    def stream() -> None:
        found = theirs.readStream.format("binaryFile").option("recursiveFileLookup", "true")
        found = found.option("pathGlobFilter", "*.{jsonl,parquet}").schema(FILES)
        query = (
            found.load(str(landing))
            .select("path")
            .writeStream.foreachBatch(read)
            .option("checkpointLocation", str(tmp_path / "stream"))
            .trigger(availableNow=True)
            .start()
        )
        query.awaitTermination()

    land(tmp_path)
    stream()
    assert sizes(tmp_path) == (5, 3, 2)
    put_records(landing, [record(4)], first=4)
    stream()
    stream()
    assert sizes(tmp_path) == (6, 4, 2)
    assert len(table_rows(tmp_path, "runs")) == 2


def test_a_session_of_spark_connect_is_refused(tmp_path: Path) -> None:
    class Connect:
        @property
        def sparkContext(self) -> None:  # noqa: N802 - Spark's name
            raise PySparkAttributeError("JVM_ATTRIBUTE_NOT_SUPPORTED")

    with pytest.raises(PipelineError, match="Spark Connect: use a classic one"):
        tidegate_pipeline.run(Connect(), tmp_path, tmp_path / "tables")  # type: ignore[arg-type]  # Connect's is another class
    assert not (tmp_path / "tables").exists()
