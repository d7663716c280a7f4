"""Files that tasks write themselves: whole or not seen, once however often a task is tried."""

import os
import signal
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from pipeline.tables import task_files
from pipeline.tables.task_files import GROUP_ROWS, TaskFiles

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

ROWS = pa.record_batch({"n": pa.array(range(GROUP_ROWS // 2 + 1))})


def fill(root: Path, attempt: int, end: Callable[[], None] = lambda: None) -> None:
    with TaskFiles(root, 7, attempt) as out:
        for _ in range(3):
            out.add("a", ROWS)
        out.add("b", ROWS)
        out.add("c", ROWS.slice(0, 0))
        end()


def fail() -> None:
    raise ZeroDivisionError


def test_each_folder_gets_one_file_of_bounded_row_groups(tmp_path: Path) -> None:
    fill(tmp_path, 1)
    fill(tmp_path, 2)
    found = sorted(path.relative_to(tmp_path).as_posix() for path in tmp_path.rglob("*.*"))
    assert found == ["a/task-00007.parquet", "b/task-00007.parquet"]
    footer = pq.read_metadata(tmp_path / "a" / "task-00007.parquet")
    assert (footer.num_rows, footer.num_row_groups) == (3 * ROWS.num_rows, 2)


def test_what_waits_is_bounded_and_few_rows_open_no_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    few = ROWS.slice(0, 100)
    monkeypatch.setattr(task_files, "WAITING_BYTES", 3 * few.nbytes)
    with TaskFiles(tmp_path, 7, 1) as out:
        for folder, opened in (("a", set()), ("b", set()), ("b", {"b"}), ("a", {"b"})):
            out.add(folder, few)
            assert {path.parent.name for path in tmp_path.rglob(".*.tmp")} == opened
    for folder in "ab":
        assert pq.read_table(tmp_path / folder).num_rows == 2 * len(few)


def test_an_attempt_that_fails_leaves_nothing_that_readers_see(tmp_path: Path) -> None:
    with pytest.raises(ZeroDivisionError):
        fill(tmp_path, 1, fail)
    assert not list(tmp_path.rglob("[!._]*.parquet"))
    fill(tmp_path, 2)
    assert pq.read_table(tmp_path / "a").num_rows == 3 * ROWS.num_rows


@pytest.mark.spark
def test_a_task_whose_worker_dies_is_tried_again(tmp_path: Path, spark: "SparkSession") -> None:
    root, rows = str(tmp_path), ROWS

    def write(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        from pyspark import TaskContext

        from pipeline.tables.task_files import TaskFiles

        task = TaskContext.get()
        assert task is not None
        taken = list(batches)
        with TaskFiles(Path(root), task.partitionId(), task.taskAttemptId()) as out:
            out.add("a", rows)
            if task.attemptNumber() == 0:
                os.kill(os.getpid(), signal.SIGKILL)
        yield from taken

    assert spark.range(10, numPartitions=1).mapInArrow(write, "id bigint").count() == 10
    assert pq.read_table(tmp_path / "a").num_rows == rows.num_rows
