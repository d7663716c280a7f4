"""All tables of a run, as programs of others read them."""

import re
import shutil
import subprocess
import sys
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from deltalake import DeltaTable, write_deltalake

import tidegate_pipeline
from tests.support.disk.landing_files import TIME, put_records, reading, record
from tests.support.pipeline_tables import table_rows

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    Reader = Callable[[Path, "SparkSession"], Any]

pytestmark = [pytest.mark.spark, pytest.mark.uncovered]

PAGE = Path(__file__).parents[2] / "docs/use/pipeline-readers.md"
PROGRAM = re.compile(r"^```python (\S+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
DAY = 86_400_000


@pytest.fixture(scope="module")
def data(spark: "SparkSession", tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the data of two runs; the second turns on the feed, and adds to a day of the first."""
    data = tmp_path_factory.mktemp("readers")
    door = record(2, reading("open"), topic="sensors/n1/door", properties=[["a", "b"], ["a", "c"]])
    put_records(data / "landing", [record(1), door, b"{"])
    tidegate_pipeline.run(spark, data / "landing", data / "tables")
    shutil.copytree(data / "tables", data / "before")
    late = record(5, reading(7, unit="°C"), time=TIME + DAY, received=TIME + DAY)
    put_records(data / "landing", [record(4, reading(3)), late], first=4)
    tidegate_pipeline.run(spark, data / "landing", data / "tables", change_feed=True)
    return data


@pytest.fixture
def tables(data: Path) -> Path:
    return data / "tables"


def program(name: str, folder: Path) -> str:
    """Run a program of the page in a folder; returns what it prints."""
    text = dict(PROGRAM.findall(PAGE.read_text(encoding="utf-8")))[name]
    command = [sys.executable, "-W", "ignore", "-c", text]  # pyiceberg warns of an empty table
    return subprocess.check_output(command, cwd=folder, text=True, timeout=120)


def names(tables: Path) -> list[str]:
    """Return the tables for readers; what begins with `_` is the pipeline's own."""
    return sorted(log.parent.name for log in tables.glob("[!_]*/_delta_log"))


def files(root: Path) -> list[str]:
    return DeltaTable(str(root)).file_uris()


def pandas(root: Path, _: "SparkSession") -> tuple[list[str], int]:
    found = DeltaTable(str(root)).to_pandas()
    return list(found.columns), len(found)


def duckdb_over_arrow(root: Path, _: "SparkSession") -> tuple[list[str], int]:
    rows = DeltaTable(str(root)).to_pyarrow_dataset()
    with duckdb.connect() as database:
        found = database.register("rows", rows).sql("FROM rows").to_arrow_table()
    return found.column_names, found.num_rows


def polars(root: Path, _: "SparkSession") -> tuple[list[str], int]:
    pl = pytest.importorskip("polars", reason="pip install 'polars>=2,<3'")
    found = pl.scan_delta(str(root)).collect()
    return found.columns, found.height


def spark_over_files(root: Path, spark: "SparkSession") -> tuple[list[str], int]:
    schema = DeltaTable(str(root)).schema().to_json()
    given = spark._jvm.org.apache.spark.sql.types.DataType.fromJson(schema).toDDL()  # type: ignore[union-attr]
    found = spark.read.schema(given).parquet(*files(root)) if files(root) else None
    rows = spark.createDataFrame([], given) if found is None else found
    return rows.columns, len(rows.collect())


def test_each_reader_reads_each_table(tables: Path, spark: "SparkSession") -> None:
    readers: list[Reader] = [pandas, duckdb_over_arrow, polars, spark_over_files]
    assert len(names(tables)) > 15
    for name in names(tables):
        whole = DeltaTable(str(tables / name))
        wanted = [field.name for field in whole.schema().fields], whole.count()
        for reader in readers:
            assert reader(tables / name, spark) == wanted, (name, reader.__name__)


def test_no_table_asks_for_more_than_the_oldest_readers_have(data: Path) -> None:
    """Of Delta's reader version 2 are columns under other names, of 3 all features."""
    for folder, writer in (("before", 2), ("tables", 4)):
        for name in names(data / "before"):
            asked = DeltaTable(str(data / folder / name)).protocol()
            assert (asked.min_reader_version, asked.reader_features) == (1, None), name
            assert (asked.min_writer_version, asked.writer_features) == (writer, None), name
            whole = DeltaTable(str(data / folder / name))
            assert whole.metadata().partition_columns == []
            schema = pa.schema(whole.schema().to_arrow())
            for file in whole.file_uris():  # Delta's timestamps are of microseconds and UTC
                assert pq.read_schema(file.removeprefix("file://")).equals(schema), name


def test_versions_are_what_the_runs_wrote(data: Path) -> None:
    for name in names(data / "before"):
        version = DeltaTable(str(data / "before" / name)).version()
        then = DeltaTable(str(data / "tables" / name), version=version).to_pyarrow_table()
        assert then.equals(DeltaTable(str(data / "before" / name)).to_pyarrow_table()), name


def feed(root: Path) -> pa.Table:
    return pa.table(DeltaTable(str(root)).load_cdf(starting_version=feed_begins(root)))


def feed_begins(root: Path) -> int:
    """Return the version that turned the feed on."""
    asked = DeltaTable(str(root))
    for each in sorted(asked.history(), key=lambda entry: int(entry["version"])):
        if each["operation"] == "SET TBLPROPERTIES":
            return int(each["version"])
    raise AssertionError(root)


def test_the_feed_has_what_the_second_run_changed(data: Path, tables: Path) -> None:
    silver = feed(tables / "silver").to_pylist()
    assert [(row["seq"], row["_change_type"]) for row in silver] == [(4, "insert"), (5, "insert")]
    days, key = feed(tables / "readings_1d").to_pylist(), ("node", "quantity", "date", "count")
    rows = Counter(tuple(map(each.get, key)) for each in table_rows(data, "readings_1d", "before"))
    for each in days:
        rows[tuple(map(each.get, key))] += 1 if each["_change_type"] == "insert" else -1
    now = Counter(tuple(map(each.get, key)) for each in table_rows(data, "readings_1d"))
    assert +rows == now
    assert {each["_change_type"] for each in days} == {"insert", "delete"}


def test_joined_files_are_no_change(tables: Path, tmp_path: Path) -> None:
    shutil.copytree(tables / "silver", tmp_path / "silver")
    before = feed(tmp_path / "silver").num_rows
    DeltaTable(str(tmp_path / "silver")).optimize.compact()
    assert len(files(tmp_path / "silver")) == 1
    assert feed(tmp_path / "silver").num_rows == before


def test_the_program_that_shows_changes(data: Path) -> None:
    assert program("changes.py", data) == "2 ['insert', 'insert']\n"


def test_the_program_that_registers_files_with_iceberg(data: Path, tmp_path: Path) -> None:
    pyiceberg = "pip install 'pyiceberg[sql-sqlite]>=0.12,<0.13'"
    catalogs = pytest.importorskip("pyiceberg.catalog.sql", reason=pyiceberg)
    shutil.copytree(data / "before", tmp_path / "tables")
    assert program("iceberg.py", tmp_path) == "2\n"
    root = str(tmp_path / "tables/silver")
    rows = pa.Table.from_pylist([{"seq": 9, "later": "x"}])
    write_deltalake(root, rows, mode="append", schema_mode="merge")
    assert program("iceberg.py", tmp_path) == "3\n"
    catalog = catalogs.SqlCatalog("fleet", uri=f"sqlite:///{tmp_path}/iceberg.db")
    found = catalog.load_table("fleet.silver").scan().to_arrow().to_pylist()
    assert {row["seq"]: row["later"] for row in found} == {1: None, 2: None, 9: "x"}
    DeltaTable(root).delete("seq = 1")
    assert program("iceberg.py", tmp_path) == "2\n"
