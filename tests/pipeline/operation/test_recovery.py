import shutil
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from pipeline.errors import PipelineError
from tests.support.disk.landing_files import put_records, record
from tests.support.pipeline_kills import Killed, kill_at
from tests.support.pipeline_tables import contents, sizes

if TYPE_CHECKING:
    from pipeline.operation.once import Totals

    Run = Callable[..., Totals]

pytestmark = pytest.mark.spark


# A kill anywhere, then the same again.


KILLS = [
    ("pipeline.batches.run_batch.write_landing", 1, True),
    ("pipeline.batches.run_batch.write_silver", 1, True),
    ("pipeline.batches.run_batch.discard", 1, False),
    ("pipeline.tables.delta.commit", 1, True),
    ("pipeline.tables.delta.commit", 2, True),
    ("pipeline.tables.delta.commit", 3, True),
    ("pipeline.batches.run_batch.write_commit", 1, False),
    ("pipeline.batches.run_batch.write_commit", 1, True),
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
    left = {path.name for path in (tmp_path / "tables").iterdir()} - {"runs", "_lease"}
    assert sorted(left) == [
        *("boards", "bronze", "clocks", "gaps", "ledger", "quarantine", "silver", "streams")
    ]


# Tables and checkpoints that do not belong together.


@pytest.fixture
def settled(tmp_path: Path, undisturbed: Path) -> Path:
    """Return a data folder whose tables are up to its landing folder."""
    return Path(shutil.copytree(undisturbed, tmp_path / "data"))


def delete_tables(data: Path) -> None:
    shutil.rmtree(data / "tables")


def delete_silver(data: Path) -> None:
    shutil.rmtree(data / "tables" / "silver")


def delete_checkpoints(data: Path) -> None:
    shutil.rmtree(data / "checkpoints")


def cut_a_file(data: Path) -> None:
    part = next((data / "tables" / "bronze").glob("*.parquet"))
    part.write_bytes(part.read_bytes()[:100])


DAMAGES = [delete_tables, delete_silver, delete_checkpoints, cut_a_file]


@pytest.mark.uncovered
@pytest.mark.parametrize("damage", DAMAGES)
def test_everything_comes_back(
    settled: Path, undisturbed: Path, run: "Run", damage: Callable[[Path], None]
) -> None:
    damage(settled)
    totals = run(settled, verify=damage is cut_a_file)
    assert contents(settled) == contents(undisturbed)
    assert totals.reasons.total() == totals.quarantined


@pytest.mark.uncovered
def test_a_repair_that_is_killed_is_ended_by_the_next_run(
    settled: Path, tmp_path: Path, run: "Run"
) -> None:
    put_records(settled / "landing", [record(9)], first=9)
    run(settled)
    expected = contents(Path(shutil.copytree(settled, tmp_path / "expected")))
    cut_a_file(settled)
    for verify, place, call, after in (
        (True, "pipeline.tables.state.forget", 1, True),
        (False, "pipeline.tables.delta.remove", 1, True),
        (False, "pipeline.tables.delta.remove", 3, False),
        (False, "pipeline.batches.run_batch.write_commit", 1, False),
    ):
        with pytest.MonkeyPatch.context() as patch:
            kill_at(patch, place, call, after=after)
            with pytest.raises(Killed):
                run(settled, verify=verify)
    run(settled)
    assert contents(settled) == expected


@pytest.mark.parametrize("damage", DAMAGES[1:])
def test_rows_that_could_not_come_back_are_not_taken_out(
    settled: Path, run: "Run", damage: Callable[[Path], None]
) -> None:
    damage(settled)
    shutil.rmtree(settled / "landing")
    before = set((settled / "tables").rglob("part-*"))
    with pytest.raises(PipelineError, match="batch 1 of the tables differs"):
        run(settled, verify=damage is cut_a_file)
    assert set((settled / "tables").rglob("part-*")) == before


def test_without_tables_and_files_nothing_is_left(settled: Path, run: "Run") -> None:
    shutil.rmtree(settled / "tables")
    shutil.rmtree(settled / "landing")
    run(settled)
    assert sizes(settled) == (0, 0, 0)
    assert not list((settled / "checkpoints" / "tables").glob("[0-9]*.json"))


@pytest.mark.uncovered
def test_a_landing_folder_may_be_emptied_once_it_was_read(settled: Path, run: "Run") -> None:
    shutil.rmtree(settled / "landing")
    run(settled)
    assert sizes(settled) == (3, 2, 2)
    put_records(settled / "landing", [record(2, resent=True), record(3)], first=2)
    run(settled)
    assert sizes(settled) == (5, 3, 2)
