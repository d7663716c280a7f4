"""A DuckDB file of views beside the tables themselves."""

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import duckdb
import pytest

from pipeline.cli import main
from pipeline.tables.lease import held
from tests.support.disk.landing_files import TIME, put_records, record
from tests.support.pipeline_tables import rows

if TYPE_CHECKING:
    from pipeline.operation.once import Totals

    Run = Callable[..., Totals]

pytestmark = pytest.mark.spark


def asked(file: Path, query: str) -> list[tuple[object, ...]]:
    with duckdb.connect(str(file), read_only=True) as database:
        return database.execute(query).fetchall()


@pytest.mark.uncovered
def test_the_views_show_the_tables(
    tmp_path: Path, run: "Run", capsys: pytest.CaptureFixture[str]
) -> None:
    data = tmp_path / "it's [here]*"
    assert main(["views", str(tmp_path / "x.duckdb"), "--tables", str(data / "tables")]) == 2
    assert "there are no tables" in capsys.readouterr().err
    timeless = record(4, time=17, received=None)
    put_records(data / "landing", [record(1), record(2), timeless, b"{"])
    run(data, gold=True)
    file = tmp_path / "fleet.duckdb"
    command = ["views", str(file), "--tables", str(data / "tables")]
    with held(data / "tables"):  # as a run that is under way does
        assert main(command) == 0
    assert "silver, streams" in capsys.readouterr().out
    assert asked(file, "SELECT count(*), count(event_date) FROM silver") == [(3, 2)]
    put_records(data / "landing", [record(3, time=TIME + 86_400_000)], first=3)
    run(data, gold=True)
    reader = duckdb.connect(str(file), read_only=True)  # whoever has the old file keeps it
    assert main(command) == 0
    assert reader.execute("SELECT count(*) FROM silver").fetchall() == [(3,)]
    reader.close()
    for table in ("bronze", "silver", "quarantine"):
        assert asked(file, f"SELECT count(*) FROM {table}") == [(len(rows(data, table)),)]
    assert asked(file, "SELECT seq FROM silver WHERE event_date IS NULL") == [(4,)]
    assert asked(file, "SELECT count(*) FROM clocks WHERE offset_ms > 0") == [(0,)]
    assert asked(file, 'SELECT sum("count") FROM readings_1d') == [(3,)]
