"""Gold tables by queries of one's own, beside the same sums by plain Python."""

from collections import Counter
from datetime import UTC, date, datetime
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
import pytest

from pipeline.errors import PipelineError
from pipeline.gold import assets
from pipeline.gold import make as gold_tables
from pipeline.gold.queries import read_queries
from pipeline.place import Place, place_of
from pipeline.tables import delta, on_disk
from pipeline.tables.columns import SILVER

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

EXAMPLE = Path(__file__).parents[3] / "examples" / "pipeline" / "gold"
Sums = dict[tuple[str, date], int]


def add(tables: Place, day: int, values: list[int]) -> None:
    """Add a file of readings to silver, one an hour, each with a payload of 10 bytes."""
    rows = [
        {"gateway_id": "barn", "epoch": "00a1b2c3d4", "stream": "main", "seq": day * 100 + hour,
         "event_time": datetime(2025, 11, day, hour, tzinfo=UTC), "received": 1_763_700_000_000,
         "node": f"n{hour % 2}", "quantity": "t", "value": float(value), "bytes": 10, "batch": 1,
         "event_date": date(2025, 11, day)}
        for hour, value in enumerate(values)
    ]  # fmt: skip
    delta.append(tables / "silver", SILVER, rows)


def sums(tables: Place, column: str) -> Sums:
    rows = delta.read(tables / "mine").to_pylist()
    return {(row["node"], row["date"]): row[column] for row in rows}


@pytest.mark.spark
def test_a_query_is_a_table_that_follows_silver_and_its_own_text(
    tmp_path: Path, spark: "SparkSession"
) -> None:
    tables, folder = place_of(tmp_path / "tables"), tmp_path / "sql"
    folder.mkdir()
    on_disk.create(tables)
    from pipeline.gold.make import make_own

    file = folder / "mine.sql"
    sent = {21: [1, 2, 3], 22: [5, 7]}
    wanted: Counter[tuple[str, date]] = Counter()

    def make(*days: int) -> None:
        for table, query in read_queries(folder).items():
            make_own(spark, tables, table, query, [date(2025, 11, day) for day in days])

    file.write_text(
        "SELECT node, event_date AS date, sum(bytes) AS total FROM silver GROUP BY ALL"
        " UNION ALL SELECT 'other day', DATE '2025-11-20', 1L;\n"
    )
    for day, values in sent.items():
        add(tables, day, values)
        for hour in range(len(values)):
            wanted[f"n{hour % 2}", date(2025, 11, day)] += 10
        make(day)
        assert sums(tables, "total") == wanted
    add(tables, 21, [9])  # late
    wanted["n0", date(2025, 11, 21)] += 10
    make(21)
    assert sums(tables, "total") == wanted
    file.write_text("SELECT node, event_date AS date, max(value) AS most FROM silver GROUP BY ALL")
    make(22)  # another query: all days anew
    assert sums(tables, "most") == {
        ("n0", date(2025, 11, 21)): 9.0, ("n1", date(2025, 11, 21)): 2.0,
        ("n0", date(2025, 11, 22)): 5.0, ("n1", date(2025, 11, 22)): 7.0,
    }  # fmt: skip
    for query, reported in (
        ("SELECT 1 AS date FROM silver", "mine.sql: its column date is int, but must be a DATE"),
        ("SELEC 1", "mine.sql: .PARSE_SYNTAX_ERROR"),
    ):
        file.write_text(query)
        with pytest.raises(PipelineError, match=reported):
            make(22)
    places = [{"gateway_id": "barn", "node": "n0", "name": "Tank", "place": "Cellar"}]
    gold_tables.create(tables)
    assets.update(tables, pa.Table.from_pylist(places, schema=assets.ASSETS_SCHEMA))
    file.write_text(
        "SELECT name, sum(value) AS total FROM silver JOIN assets USING (gateway_id, node)"
        " GROUP BY ALL"
    )
    make()
    assert delta.read(tables / "mine").to_pylist() == [{"name": "Tank", "total": 18.0}]
    add(tables, 23, [2])
    make(23)  # as a whole
    assert delta.read(tables / "mine").to_pylist() == [{"name": "Tank", "total": 20.0}]
    file.rename(folder / "silver.sql")
    with pytest.raises(PipelineError, match="silver is a table of the pipeline itself"):
        make(22)


def test_names_that_cannot_be_are_told(tmp_path: Path) -> None:
    (tmp_path / "My Table.sql").write_text("SELECT 1")
    with pytest.raises(PipelineError, match="a table's name is"):
        read_queries(tmp_path)
    with pytest.raises(PipelineError, match="there is no folder"):
        read_queries(tmp_path / "none")


@pytest.mark.spark
def test_the_example_is_a_table(tmp_path: Path, spark: "SparkSession") -> None:
    tables = place_of(tmp_path / "tables")
    on_disk.create(tables)
    from pipeline.gold import make as gold

    gold.create(tables)
    assert gold.all_dates(tables) == set()
    add(tables, 21, [1])
    assert gold.all_dates(tables) == {"2025-11-21"}
    queries = read_queries(EXAMPLE)
    gold.make(lambda: spark, tables, ["2025-11-21"], beside=gold.Beside(queries=queries))
    assert not delta.read(tables / "consumption").num_rows
    assert not delta.read(tables / "places").num_rows
