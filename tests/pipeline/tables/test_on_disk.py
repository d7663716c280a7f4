from pathlib import Path

import pytest
from deltalake import DeltaTable

from pipeline.errors import PipelineError
from pipeline.tables import delta, on_disk
from pipeline.tables.columns import Columns, names
from pipeline.tables.damage import damaged
from pipeline.tables.state import State


def add(root: Path, table: str, batch: int, *files: str) -> None:
    """Add rows of landing files to a table, as a batch."""
    known = names(on_disk.TABLES[table])
    rows = [{"landing_file": name, "batch": batch, "part": 0} for name in files]
    rows = [{name: row[name] for name in row.keys() & known} for row in rows]
    delta.append(root / table, on_disk.TABLES[table], rows, batch)


@pytest.mark.parametrize("table", on_disk.OF_BATCHES)
def test_a_new_table_has_its_columns_and_no_rows(tmp_path: Path, table: str) -> None:
    assert on_disk.create(tmp_path) == on_disk.create(tmp_path) == 0
    dataset = DeltaTable(tmp_path / table).to_pyarrow_dataset()
    assert dataset.count_rows() == 0
    assert dataset.schema.names == names(on_disk.TABLES[table])
    assert damaged(tmp_path, State(tmp_path), 0, verify=True) == []
    assert not list(tmp_path.glob("_*"))


def test_a_table_that_a_full_disk_left_half_made_is_made(tmp_path: Path) -> None:
    for table in on_disk.TABLES:
        (tmp_path / table / "_delta_log").mkdir(parents=True)
    on_disk.create(tmp_path)
    for table in on_disk.TABLES:
        assert DeltaTable(tmp_path / table).to_pyarrow_table().num_rows == 0


def test_a_column_that_is_added_later_is_seen_by_every_reader(tmp_path: Path) -> None:
    def shorter(columns: Columns) -> Columns:
        return columns[:-3] + columns[-2:]

    now = dict(on_disk.TABLES)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(on_disk, "TABLES", {name: shorter(each) for name, each in now.items()})
        on_disk.create(tmp_path)
    on_disk.create(tmp_path)
    for table, columns in now.items():
        found = DeltaTable(tmp_path / table).to_pyarrow_table().column_names
        assert set(names(columns)) == set(found), table


def test_bronze_of_an_earlier_version_is_refused(tmp_path: Path) -> None:
    (tmp_path / "bronze" / "batch=0").mkdir(parents=True)
    with pytest.raises(PipelineError, match=r"is of an earlier version: move .* away"):
        on_disk.create(tmp_path)


def test_rows_and_landing_files_of_batches(tmp_path: Path) -> None:
    on_disk.create(tmp_path)
    add(tmp_path, "bronze", 1, "b", "b")
    add(tmp_path, "bronze", 2, "c")
    add(tmp_path, "quarantine", 1, "q")
    add(tmp_path, "ledger", 3, "l")
    assert on_disk.create(tmp_path) == 3
    assert on_disk.rows_by_batch(tmp_path / "bronze") == {1: 2, 2: 1}
    assert on_disk.landing_files(tmp_path, {1, 3, 4}) == {1: {"b", "q"}, 3: {"l"}}
    wrong = damaged(tmp_path, State(tmp_path), 3, verify=False)
    assert [each.number for each in wrong] == [1, 2, 3]
    on_disk.remove_batches(tmp_path, {1, 3})
    assert on_disk.landing_files(tmp_path, {1, 2, 3}) == {2: {"c"}}


def test_an_unreadable_file_makes_its_batches_unlike_any_commit(tmp_path: Path) -> None:
    on_disk.create(tmp_path)
    for batch, table in ((1, "bronze"), (2, "bronze"), (4, "bronze"), (4, "silver")):
        add(tmp_path, table, batch, "f")
    DeltaTable(tmp_path / "bronze").optimize.compact()
    add(tmp_path, "bronze", 5, "g")
    joined = next(e for e in delta.files(tmp_path / "bronze") if e["num_records"] == 3)
    (tmp_path / "bronze" / joined["path"]).write_bytes(b"PAR1")
    wrong = dict.fromkeys(range(1, 5), on_disk.DAMAGED)
    assert on_disk.rows_by_batch(tmp_path / "bronze") == wrong | {5: 1}
    assert on_disk.landing_files(tmp_path, set(wrong)) == {4: {"f"}}
    on_disk.remove_batches(tmp_path, set(wrong))
    assert on_disk.rows_by_batch(tmp_path / "bronze") == {5: 1}
    assert on_disk.rows_by_batch(tmp_path / "silver") == {}
