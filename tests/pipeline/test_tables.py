from pathlib import Path

import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.parquet as pq
import pytest

from pipeline import tables
from pipeline.checkpoint import Range
from pipeline.columns import BRONZE, QUARANTINE, SILVER, Columns, arrow_schema, names


def write(folder: Path, columns: Columns, rows: list[dict[str, object]]) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    schema = arrow_schema(columns)
    pq.write_table(pa.Table.from_pylist(rows, schema), folder / f"part-{len(rows)}.parquet")


def key(seq: int, epoch: str = "00a1b2c3d4", gateway: str = "barn") -> dict[str, object]:
    return {"gateway_id": gateway, "epoch": epoch, "stream": "main", "seq": seq}


@pytest.mark.parametrize(
    ("table", "columns"), [("bronze", BRONZE), ("quarantine", QUARANTINE), ("silver", SILVER)]
)
def test_a_new_table_has_its_columns_and_no_rows(
    tmp_path: Path, table: str, columns: Columns
) -> None:
    tables.create(tmp_path)
    tables.create(tmp_path)
    dataset = ds.dataset(tmp_path / table, partitioning="hive")
    assert dataset.count_rows() == 0
    assert set(dataset.schema.names) == {*names(columns), "batch"}
    assert tables.rows_by_batch(tmp_path) == {}
    assert not list(tmp_path.glob("_*"))


def test_rows_are_counted_by_batch_and_table(tmp_path: Path) -> None:
    tables.create(tmp_path)
    write(tmp_path / "bronze" / "batch=1", BRONZE, [key(1), key(2)])
    write(tmp_path / "bronze" / "batch=1", BRONZE, [key(3)])
    write(tmp_path / "silver" / "batch=1" / "event_date=2025-11-21", BRONZE, [key(1)])
    write(tmp_path / "quarantine" / "batch=12", QUARANTINE, [key(1)])
    write(tmp_path / "bronze" / "batch=1" / "_temporary", BRONZE, [key(1)])
    write(tmp_path / "bronze" / "batch=x", BRONZE, [key(1)])
    assert tables.rows_by_batch(tmp_path) == {
        1: {"bronze": 3, "quarantine": 0, "silver": 1},
        12: {"bronze": 0, "quarantine": 1, "silver": 0},
    }


def test_an_unreadable_file_makes_a_batch_unlike_any_commit(tmp_path: Path) -> None:
    write(tmp_path / "bronze" / "batch=1", BRONZE, [key(1)])
    (tmp_path / "bronze" / "batch=1" / "cut.parquet").write_bytes(b"PAR1")
    assert tables.rows_by_batch(tmp_path)[1]["bronze"] == tables.DAMAGED
    assert tables.landing_files(tmp_path, 1) == set()


def test_key_ranges_span_each_gateway_epoch_and_stream(tmp_path: Path) -> None:
    rows = [key(7), key(3), key(5), key(1, epoch="ffffffffff"), key(2, gateway="shed")]
    write(tmp_path, BRONZE, rows)
    assert tables.key_ranges(tmp_path) == (
        Range("barn", "00a1b2c3d4", "main", 3, 7),
        Range("barn", "ffffffffff", "main", 1, 1),
        Range("shed", "00a1b2c3d4", "main", 2, 2),
    )
    assert tables.key_ranges(tmp_path / "missing") == ()


def test_the_landing_files_of_a_batch_are_those_of_its_records_and_faults(tmp_path: Path) -> None:
    write(tmp_path / "bronze" / "batch=1", BRONZE, [{"landing_file": "b"}, {"landing_file": "b"}])
    write(tmp_path / "quarantine" / "batch=1", QUARANTINE, [{"landing_file": "q"}])
    assert tables.landing_files(tmp_path, 1) == {"b", "q"}
    assert tables.landing_files(tmp_path, 2) == set()


def test_reasons_are_counted_over_all_batches(tmp_path: Path) -> None:
    tables.create(tmp_path)
    assert tables.reasons(tmp_path) == {}
    for batch, reason in enumerate(("not_json", "truncated", "not_json"), 1):
        write(tmp_path / "quarantine" / f"batch={batch}", QUARANTINE, [{"reason": reason}])
    assert tables.reasons(tmp_path) == {"not_json": 2, "truncated": 1}
