from pathlib import Path

import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.parquet as pq
import pytest
from deltalake import DeltaTable

from pipeline.tables import on_disk
from pipeline.tables.columns import BRONZE, QUARANTINE, SILVER, Columns, arrow_schema, names
from pipeline.tables.damage import damaged
from pipeline.tables.state import State


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
    on_disk.create(tmp_path)
    on_disk.create(tmp_path)
    if table == "silver":
        dataset = DeltaTable(tmp_path / table).to_pyarrow_dataset()
    else:
        dataset = ds.dataset(tmp_path / table, partitioning="hive")
    assert dataset.count_rows() == 0
    assert set(dataset.schema.names) == {*names(columns), "batch"}
    assert damaged(tmp_path, State(), verify=True) == []
    assert not list(tmp_path.glob("_*"))


def test_a_table_that_a_full_disk_left_half_made_is_made(tmp_path: Path) -> None:
    for table in ("silver", "ledger"):
        (tmp_path / table / "_delta_log").mkdir(parents=True)
    on_disk.create(tmp_path)
    assert DeltaTable(tmp_path / "silver").to_pyarrow_table().num_rows == 0
    assert DeltaTable(tmp_path / "ledger").to_pyarrow_table().num_rows == 0


def test_a_column_that_is_added_later_is_seen_by_every_reader(tmp_path: Path) -> None:
    old = {"bronze": BRONZE[:-1], "silver": SILVER[:-3] + SILVER[-2:]}
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(on_disk, "IN_BATCHES", {"bronze": old["bronze"]})
        patch.setattr(on_disk, "IN_DELTA", {"silver": old["silver"]})
        on_disk.create(tmp_path)
    write(tmp_path / "bronze" / "batch=1", old["bronze"], [key(1)])
    on_disk.create(tmp_path)
    found = ds.dataset(tmp_path / "bronze", partitioning="hive")
    assert {*names(BRONZE), "batch"} == set(found.schema.names)
    assert found.count_rows() == 1
    assert set(names(SILVER)) == set(
        DeltaTable(tmp_path / "silver").to_pyarrow_table().column_names
    )


def test_an_unreadable_file_makes_a_batch_unlike_any_commit(tmp_path: Path) -> None:
    write(tmp_path / "bronze" / "batch=1", BRONZE, [key(1)])
    (tmp_path / "bronze" / "batch=1" / "cut.parquet").write_bytes(b"PAR1")
    assert on_disk.count_rows(tmp_path / "bronze" / "batch=1") == on_disk.DAMAGED
    assert on_disk.landing_files(tmp_path, 1) == set()


def test_the_landing_files_of_a_batch_are_those_of_its_records_and_faults(tmp_path: Path) -> None:
    write(tmp_path / "bronze" / "batch=1", BRONZE, [{"landing_file": "b"}, {"landing_file": "b"}])
    write(tmp_path / "quarantine" / "batch=1", QUARANTINE, [{"landing_file": "q"}])
    assert on_disk.landing_files(tmp_path, 1) == {"b", "q"}
    assert on_disk.landing_files(tmp_path, 2) == set()
