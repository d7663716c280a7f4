"""Rows of a Delta table that others take the place of, by the values of a column."""

from collections.abc import Sequence
from datetime import date
from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import DeltaTable

from pipeline.errors import PipelineError
from pipeline.tables import delta
from pipeline.tables.columns import Columns, arrow_schema

COLUMNS: Columns = (("gateway_id", "string"), ("date", "date"), ("seq", "bigint"))
DAYS = [date(2025, 11, day) for day in range(1, 8)]


def rows(*numbers: int, days: Sequence[date | None]) -> list[dict[str, object]]:
    return [
        {"gateway_id": f"g{number}", "date": day, "seq": number}
        for number, day in zip(numbers, days, strict=True)
    ]


def made(root: Path) -> Path:
    """Return a table of three files: of two days, of four and no day, of one day."""
    delta.create(root, COLUMNS)
    delta.append(root, COLUMNS, rows(1, 2, days=DAYS[:2]))
    delta.append(root, COLUMNS, rows(3, 4, 5, 6, days=[DAYS[1], DAYS[3], DAYS[6], None]))
    delta.append(root, COLUMNS, rows(7, days=[DAYS[4]]))
    return root


def numbers(root: Path) -> list[int]:
    return sorted(row["seq"] for row in delta.read(root).to_pylist())


@pytest.mark.parametrize("compacted", [False, True], ids=["small files", "joined files"])
@pytest.mark.parametrize(
    ("days", "left"),
    [
        (DAYS[1:2], [1, 4, 5, 6, 7]),
        (DAYS, [6]),
        ([DAYS[2], DAYS[5]], [1, 2, 3, 4, 5, 6, 7]),  # in a file's range, and no row's
        ([date(2020, 1, 1)], [1, 2, 3, 4, 5, 6, 7]),
    ],
)
def test_rows_of_these_values_go_and_no_others(
    tmp_path: Path, days: list[date], left: list[int], *, compacted: bool
) -> None:
    root = made(tmp_path / "table")
    if compacted:
        DeltaTable(root.as_uri()).optimize.compact()
        assert len(delta.files(root)) == 1
    new = rows(10, days=days[:1])
    schema = arrow_schema(COLUMNS)
    part = delta.typed(pa.Table.from_pylist(new, schema), schema)
    before = {each["path"] for each in delta.files(root)}
    delta.overwrite_parts(root, part, "date", set(days))
    assert numbers(root) == [*left, 10]
    if len(left) == 7:
        assert before <= {each["path"] for each in delta.files(root)}, "no file was written again"
    found = delta.read_parts(root, ["seq", "gateway_id"], "date", set(days))
    assert found.to_pylist() == [{"seq": 10, "gateway_id": "g10"}]
    assert not list(tmp_path.glob("_*"))


def test_a_table_with_a_folder_for_each_date_is_of_an_earlier_version(tmp_path: Path) -> None:
    root = tmp_path / "silver"
    DeltaTable.create(root.as_uri(), arrow_schema(COLUMNS), partition_by=["date"])
    with pytest.raises(PipelineError, match=r"silver is of an earlier version: move .* away"):
        delta.create(root, COLUMNS)
