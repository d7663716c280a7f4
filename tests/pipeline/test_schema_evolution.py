"""Tables of a version that had fewer columns, read by everybody once this one has run on them."""

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import duckdb
import pytest
from deltalake import DeltaTable, write_deltalake

from pipeline.tables.columns import BRONZE, SILVER, names
from tests.support.disk.landing_files import put_records, reading, record

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from pipeline.operation.once import Totals

    Run = Callable[..., Totals]

ADDED = {
    "bronze": ["content_type", "payload_is_json"],
    "silver": ["quality", "time_source", "instance"],
}
"""The columns that the earlier version did not know."""

pytestmark = pytest.mark.spark


def take_columns_out(tables: Path) -> None:
    """Leave the tables as the earlier version would have written them."""
    for table, added in ADDED.items():
        root = tables / table
        rows = DeltaTable(root.as_uri()).to_pyarrow_table().drop_columns(added)
        shutil.rmtree(root)
        write_deltalake(root.as_uri(), rows)


@pytest.mark.uncovered
def test_columns_of_a_later_version_are_null_in_older_rows(
    tmp_path: Path, run: "Run", spark: "SparkSession"
) -> None:
    tables = tmp_path / "tables"
    put_records(tmp_path / "landing", [record(1), record(2)])
    run(tmp_path)
    take_columns_out(tables)
    new = record(3, reading(7.5), content_type="text/plain")
    put_records(tmp_path / "landing", [record(2, resent=True), new], first=2)
    assert run(tmp_path, verify=True).silver == 3

    both = [DeltaTable(str(tables / table)) for table in ("bronze", "silver")]
    files = [[uri.removeprefix("file://") for uri in table.file_uris()] for table in both]
    merged = spark.read.option("mergeSchema", "true")
    by_name = "union_by_name = true"
    readers = {
        "pyarrow": [table.to_pyarrow_table().to_pandas() for table in both],
        "pandas": [table.to_pandas() for table in both],
        "spark": [merged.parquet(*each).toPandas() for each in files],
        "duckdb": [duckdb.execute(f"FROM read_parquet({each}, {by_name})").df() for each in files],
    }
    for reader, (found, typed) in readers.items():
        assert set(names(BRONZE)) <= set(found.columns), reader
        assert set(names(SILVER)) <= set(typed.columns), reader
        kinds = found.set_index(["seq", "resent"])["content_type"]
        assert (len(kinds), kinds.notna().sum()) == (4, 1), reader
        sources = typed.set_index("seq")["time_source"]
        assert sources.isna().to_dict() == {1: True, 2: True, 3: False}, reader
