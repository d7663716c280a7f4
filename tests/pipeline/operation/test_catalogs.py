"""SQL that registers tables, as parsers that others wrote understand it."""

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import duckdb
import pytest

from pipeline.cli import main
from pipeline.operation.catalogs import statements
from pipeline.tables import delta
from tests.support.table import table

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

PLACE = "s3://fleet/it's a place"
LIKE_TRINO = {
    "spark.sql.ansi.enabled": "true",
    "spark.sql.ansi.doubleQuotedIdentifiers": "true",
    "spark.sql.legacy.notReserveProperties": "true",  # of which Athena's table_type is one
}


@pytest.fixture
def parser(spark: "SparkSession") -> Iterator[Any]:
    """Return Spark's parser, which takes the SQL of Hive and of Trino, too."""
    before = {name: spark.conf.get(name) for name in LIKE_TRINO}
    jvm: Any = spark._jsparkSession
    try:
        yield lambda sql, like_trino=False: _parsed(spark, jvm, sql, like_trino=like_trino)
    finally:
        for name, value in before.items():
            spark.conf.set(name, str(value))


def _parsed(spark: "SparkSession", jvm: Any, sql: str, *, like_trino: bool) -> Any:
    for name, value in LIKE_TRINO.items():
        spark.conf.set(name, value if like_trino or "legacy" in name else "false")
    return jvm.sessionState().sqlParser().parsePlan(sql.removesuffix(";"))


@pytest.mark.spark
@table(
    ("engine", "schema", "name"),
    [
        ("spark", None, "tidegate"),
        ("spark", "main.my-fleet", "main, my-fleet"),
        ("athena", "fleet", "fleet"),
    ],
)
def test_spark_and_athena_create_tables_at_their_places(
    parser: Any, engine: str, schema: str | None, name: str
) -> None:
    created, _, hour = statements(engine, ["silver", "1h"], PLACE, schema)
    assert f"[{name}]" in parser(created).toString()
    plan = parser(hour)
    assert f"[{name}, 1h]" in plan.name().toString()
    assert plan.ignoreIfExists()
    given = plan.tableSpec()
    assert given.location().get() == f"{PLACE}/1h"
    if engine == "spark":
        assert given.provider().get() == "DELTA"
    else:  # Spark takes the property, and forgets it
        assert hour.endswith(" TBLPROPERTIES ('table_type' = 'DELTA');")


@pytest.mark.spark
def test_trino_registers_tables_at_their_places(parser: Any) -> None:
    created, silver = statements("trino", ["silver"], "s3://fleet/tables/", "lake.fleet")
    assert "[lake, fleet]" in parser(created, like_trino=True).toString()
    plan = parser(silver, like_trino=True)
    assert "[lake, system, register_table]" in plan.toString()
    given = [plan.args().apply(n) for n in range(plan.args().size())]
    assert {each.key(): each.value().toString() for each in given} == {
        "schema_name": "fleet",
        "table_name": "silver",
        "table_location": "s3://fleet/tables/silver",
    }


def test_duckdb_makes_a_view_of_each_table(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """`delta_scan` is here a macro: DuckDB's extension has to be of its very version."""
    root = tmp_path / "it's here"
    for name in ("silver", "1h"):
        delta.create(root / name, (("seq", "bigint"),))
        delta.append(root / name, (("seq", "bigint"),), [{"seq": 7}])
    (root / "_staging-1").mkdir()
    assert main(["catalog", "duckdb", "--tables", str(root), "--schema", "fleet"]) == 0
    with duckdb.connect() as database:
        database.execute(
            "CREATE MACRO delta_scan(place) AS TABLE"
            " SELECT * FROM read_parquet(place || '/*.parquet')"
        )
        for statement in capsys.readouterr().out.splitlines() * 2:
            database.execute(statement)
        assert database.sql('SELECT seq FROM fleet."1h"').fetchall() == [(7,)]
        assert database.sql(
            "SELECT view_name FROM duckdb_views() WHERE NOT internal"
        ).fetchall() == [
            ("1h",),
            ("silver",),
        ]


@table(
    ("arguments", "said"),
    [
        (["athena"], "athena reads tables at s3://… only, not at file:///"),
        (["trino", "--schema", "fleet"], "schema fleet is not CATALOG.SCHEMA, as trino has them"),
        (["spark", "--schema", "a.b.c"], "schema a.b.c is not SCHEMA or CATALOG.SCHEMA"),
        (["spark", "--schema", "a`"], "of 1 to 128 of a-z, A-Z, 0-9, _ and - each"),
        (["spark", "--schema", ""], "schema is not SCHEMA"),
        (["duckdb", "--tables", "nowhere"], "there are no tables in "),
    ],
)
def test_what_cannot_be_registered(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], arguments: list[str], said: str
) -> None:
    tables = [] if "--tables" in arguments else ["--tables", str(tmp_path)]
    assert main(["catalog", *arguments, *tables]) == 2
    assert said in capsys.readouterr().err
