"""Files that tasks write themselves: under names of their own, and told to whom commits them."""

import os
import signal
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from pipeline.place import place_of
from pipeline.tables import delta, task_files
from pipeline.tables.task_files import GROUP_ROWS, TaskFiles, Written, of, write_in_tasks

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

ROWS = pa.record_batch({"seq": pa.array(range(GROUP_ROWS // 2 + 1))})
COLUMNS = (("seq", "bigint"),)


def fill(root: Path, *, fail: bool = False) -> list[Written]:
    with TaskFiles(place_of(root)) as out:
        for _ in range(3):
            out.add("a", ROWS)
        out.add("b", ROWS)
        out.add("c", ROWS.slice(0, 0))
        if fail:
            raise ZeroDivisionError
    return out.written


def test_each_folder_gets_one_file_of_bounded_row_groups_an_attempt(tmp_path: Path) -> None:
    written = fill(tmp_path) + fill(tmp_path)
    assert [each.folder for each in written] == ["a", "b", "a", "b"]
    assert len({each.name for each in written}) == 2
    found = {path for path in tmp_path.rglob("*.*") if path.is_file()}
    assert found == {tmp_path / each.folder / each.name for each in written}
    footer = pq.read_metadata(tmp_path / "a" / written[0].name)
    assert (footer.num_rows, footer.num_row_groups) == (3 * ROWS.num_rows, 2)


def test_what_is_told_of_a_file_is_what_is_in_it(tmp_path: Path) -> None:
    delta.create(tmp_path / "a", COLUMNS)
    written = of(fill(tmp_path), "a")
    delta.commit(tmp_path / "a", written)
    [shown] = delta.files(tmp_path / "a")
    path = tmp_path / "a" / shown["path"]
    assert (shown["size_bytes"], shown["num_records"]) == (path.stat().st_size, written[0].rows)
    assert (shown["min.seq"], shown["max.seq"]) == (0, ROWS.num_rows - 1)


def test_what_waits_is_bounded_and_few_rows_open_no_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    few = ROWS.slice(0, 100)
    monkeypatch.setattr(task_files, "WAITING_BYTES", 3 * few.nbytes)
    with TaskFiles(place_of(tmp_path)) as out:
        for folder, opened in (("a", set()), ("b", set()), ("b", {"b"}), ("a", {"b"})):
            out.add(folder, few)
            assert {path.parent.name for path in tmp_path.rglob("*.parquet")} == opened
    for folder in "ab":
        assert pq.read_table(tmp_path / folder).num_rows == 2 * len(few)


def test_an_attempt_that_fails_removes_what_it_wrote(tmp_path: Path) -> None:
    with pytest.raises(ZeroDivisionError):
        fill(tmp_path, fail=True)
    assert not [path for path in tmp_path.rglob("*") if path.is_file()]


@pytest.mark.spark
def test_a_task_whose_worker_dies_leaves_files_that_no_commit_has(
    tmp_path: Path, spark: "SparkSession"
) -> None:
    rows = ROWS

    def write(_items: Iterable[int], out: TaskFiles) -> None:
        from pyspark import TaskContext

        task = TaskContext.get()
        assert task is not None
        for _ in "abc":
            out.add("a", rows)
        if task.attemptNumber() == 0:
            os.kill(os.getpid(), signal.SIGKILL)

    root = place_of(tmp_path)
    delta.create(root / "a", COLUMNS)
    written = write_in_tasks(spark.sparkContext, [1], 1, root, write)
    delta.commit(root / "a", written)
    assert len(list((tmp_path / "a").glob("*.parquet"))) == 2
    assert delta.read(root / "a").num_rows == 3 * rows.num_rows
    gone = delta.opened(root / "a").vacuum(0, False, False, full=True)
    assert len(gone) == 1
    assert delta.read(root / "a").num_rows == 3 * rows.num_rows
