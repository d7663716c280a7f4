"""Gold that DuckDB cannot make is told in one line, and the tables stay as they were."""

from pathlib import Path

import pytest

from pipeline.errors import JobError
from pipeline.gold import make as gold
from pipeline.operation.once import spark_errors
from pipeline.settings import make_settings
from pipeline.tables import delta, on_disk
from pipeline.tables.columns import SILVER
from pipeline.tables.state import FILES


def test_a_damaged_file_of_silver_ends_with_a_line_that_names_it(tmp_path: Path) -> None:
    tables = tmp_path / "tables*"  # a name that is no pattern
    tables.mkdir()
    on_disk.create(tables)
    gold.create(tables)
    row = {"gateway_id": "barn", "node": "n1", "quantity": "t", "batch": 1}
    folder = tables / "silver" / "event_date=2025-11-21"
    folder.mkdir()
    delta.append(tables / "silver", SILVER, [row])
    (old,) = (each for each in delta.files(tables / "silver") if each["num_records"])
    file = folder / "rows.parquet"
    (tables / "silver" / old["path"]).rename(file)
    delta.commit(tables / "silver", [delta.addition(file, tables / "silver")])
    file.write_bytes(file.read_bytes()[:-9])
    settings = make_settings(tmp_path, tables)
    with pytest.raises(JobError) as told, spark_errors(settings):
        gold.make(tables, ["2025-11-21"], FILES.empty_table())
    assert str(file) in str(told.value)
    assert "\n" not in str(told.value)
    assert not delta.read(tables / "node_day").num_rows
