import shutil
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from pipeline.errors import PipelineError
from pipeline.tables import silver_numbers
from tests.support.disk.landing_files import put_records, record
from tests.support.pipeline_kills import Killed, kill_at
from tests.support.pipeline_tables import contents, known, sizes, table_rows

if TYPE_CHECKING:
    from pipeline.operation.once import Totals

    Run = Callable[..., Totals]

pytestmark = pytest.mark.spark


# A kill anywhere, then the same again.


KILLS = [
    ("pipeline.batches.run_batch.note_files", 1, True),
    ("pipeline.batches.run_batch.write_landing", 1, True),
    ("pipeline.batches.run_batch.write_in_tasks", 1, True),
    ("pipeline.batches.run_batch.discard", 1, True),
    ("pipeline.batches.run_batch.write_silver", 1, True),
    ("pipeline.batches.run_batch.discard", 2, True),
    ("pipeline.batches.run_batch.discard", 3, True),
    ("pipeline.tables.delta.commit", 2, True),
    ("pipeline.tables.delta.commit", 3, True),
    ("pipeline.tables.delta.commit", 4, True),
    ("pipeline.tables.silver_numbers.add", 1, False),
    ("pipeline.tables.silver_numbers.add", 1, True),
    ("pipeline.batches.run_batch.write_commit", 1, False),
    ("pipeline.batches.run_batch.write_commit", 1, True),
    ("pipeline.ledger.make.make", 1, True),
]


def land(data: Path) -> None:
    put_records(data / "landing", [record(1), record(2), record(2, content=b"z"), b"null"])


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory: pytest.TempPathFactory, run: "Run") -> Path:
    data = tmp_path_factory.mktemp("undisturbed")
    land(data)
    run(data)
    return data


@pytest.mark.uncovered
def test_kills_leave_nothing_behind(tmp_path: Path, run: "Run", undisturbed: Path) -> None:
    """Each run meets what the one before it left, and gets a step further."""
    land(tmp_path)
    for place, call, after in KILLS:
        with pytest.MonkeyPatch.context() as patch:
            kill_at(patch, place, call, after=after)
            with pytest.raises(Killed):
                run(tmp_path)
    run(tmp_path)
    assert contents(tmp_path) == contents(undisturbed)
    assert known(tmp_path) == known(undisturbed)
    left = {path.name for path in (tmp_path / "tables").iterdir()} - {"runs", "_lease"}
    assert sorted(left) == [
        *("batches", "boards", "bronze", "clocks", "files", "folders", "gaps", "islands"),
        *("ledger", "quarantine", "quarantined", "silver", "streams"),
    ]


# Tables of which something is gone or damaged.


@pytest.fixture
def settled(tmp_path: Path, undisturbed: Path) -> Path:
    """Return a data folder whose tables are up to its landing folder."""
    return Path(shutil.copytree(undisturbed, tmp_path / "data"))


def delete_tables(data: Path) -> None:
    shutil.rmtree(data / "tables")


def delete(table: str) -> Callable[[Path], None]:
    def gone(data: Path) -> None:
        shutil.rmtree(data / "tables" / table)

    gone.__name__ = f"delete {table}"
    return gone


def cut(table: str) -> Callable[[Path], None]:
    """Damage a file of a table, which only `--verify` sees."""

    def damaged(data: Path) -> None:
        part = next((data / "tables" / table).glob("*.parquet"))
        part.write_bytes(part.read_bytes()[:100])

    damaged.__name__ = "cut"
    return damaged


def delete_batches_of_joined_islands(data: Path) -> None:
    silver_numbers.tidy(data / "tables", many=1)
    delete("batches")(data)


OF_STATE = ("batches", "files", "islands", "quarantined")
DAMAGES = [
    delete_tables,
    delete_batches_of_joined_islands,
    *map(delete, ("silver", *OF_STATE)),
    *map(cut, ("bronze", *OF_STATE)),
]


@pytest.mark.uncovered
@pytest.mark.parametrize("damage", DAMAGES)
def test_everything_comes_back(
    settled: Path, undisturbed: Path, run: "Run", damage: Callable[[Path], None]
) -> None:
    damage(settled)
    totals = run(settled, verify=damage.__name__ == "cut")
    assert contents(settled) == contents(undisturbed)
    assert known(settled) == known(undisturbed)
    assert totals.reasons.total() == totals.quarantined


@pytest.mark.uncovered
def test_a_repair_that_is_killed_is_ended_by_the_next_run(
    settled: Path, tmp_path: Path, run: "Run"
) -> None:
    put_records(settled / "landing", [record(9)], first=9)
    run(settled)
    before = Path(shutil.copytree(settled, tmp_path / "expected"))
    cut("bronze")(settled)
    for verify, place, call, after in (
        (True, "pipeline.tables.delta.remove_all", 1, False),
        (True, "pipeline.tables.delta.remove", 1, True),
        (False, "pipeline.tables.delta.remove", 2, True),
        (False, "pipeline.tables.delta.remove", 4, False),
        (False, "pipeline.tables.delta.remove", 9, True),
        (False, "pipeline.tables.silver_numbers.overwrite", 1, True),
        (False, "pipeline.batches.run_batch.write_commit", 1, False),
    ):
        with pytest.MonkeyPatch.context() as patch:
            kill_at(patch, place, call, after=after)
            with pytest.raises(Killed):
                run(settled, verify=verify)
    run(settled)
    assert contents(settled) == contents(before)
    assert known(settled) == known(before)


@pytest.mark.parametrize("damage", [delete("silver"), delete("batches"), cut("bronze")])
def test_rows_that_could_not_come_back_are_not_taken_out(
    settled: Path, run: "Run", damage: Callable[[Path], None]
) -> None:
    damage(settled)
    shutil.rmtree(settled / "landing")
    before = set((settled / "tables").rglob("part-*"))
    with pytest.raises(PipelineError, match="batch 1 of the tables differs"):
        run(settled, verify=damage.__name__ == "cut")
    assert set((settled / "tables").rglob("part-*")) == before


def test_without_tables_and_files_nothing_is_left(settled: Path, run: "Run") -> None:
    shutil.rmtree(settled / "tables")
    shutil.rmtree(settled / "landing")
    run(settled)
    assert sizes(settled) == (0, 0, 0)
    assert table_rows(settled, "batches") == []


@pytest.mark.uncovered
def test_a_landing_folder_may_be_emptied_once_it_was_read(settled: Path, run: "Run") -> None:
    shutil.rmtree(settled / "landing")
    run(settled)
    assert sizes(settled) == (3, 2, 2)
    put_records(settled / "landing", [record(2, resent=True), record(3)], first=2)
    run(settled)
    assert sizes(settled) == (5, 3, 2)
