"""`compact` and SIGKILL at any moment: TIDEGATE_KILLS=40 tries so many, of larger tables."""

import os
import random
import shutil
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.parquet as pq
import pytest

from pipeline.tables import delta, on_disk
from pipeline.tables.columns import SILVER, arrow_schema
from pipeline.tables.damage import damaged
from pipeline.tables.staging import put_in_place, stage
from pipeline.tables.state import Commit, Mark, load, write_commit

KILLS = int(os.environ.get("TIDEGATE_KILLS", "0"))
BATCHES, ROWS = (60, 20_000) if KILLS else (12, 500)
BATCHES_A_DAY = 5
DAY = 86_400_000
NUMBER = {"bronze": "line", "quarantine": "line", "silver": "seq"}
"""The column in which each row of a table has a number of its own."""
COMPACT = """
import sys
import pipeline.operation.maintain
from pipeline.cli import main
print("ready", flush=True)
sys.exit(main(["compact", "--tables", sys.argv[1]]))
"""


def add(data: Path, batch: int) -> None:
    """Commit a batch with rows in each table, of files as small as those of a run are."""
    tables = data / "tables"
    counts = {"bronze": ROWS, "quarantine": ROWS // 100, "silver": ROWS}
    day = batch // BATCHES_A_DAY
    staged = stage(tables)
    for table in on_disk.IN_BATCHES:
        schema = arrow_schema(on_disk.IN_BATCHES[table])
        rows = numbered(schema, "line", batch, counts[table], {"received": day * DAY + batch})
        (staged / table).mkdir()
        pq.write_table(rows, staged / table / "part.parquet")
        put_in_place(staged / table, on_disk.batch_folder(tables, table, batch))
    (staged / "silver").mkdir()
    rows = numbered(arrow_schema(SILVER), "seq", batch, ROWS, {"batch": batch, "event_date": day})
    pq.write_table(rows, staged / "silver" / "part.parquet")
    delta.commit(
        tables / "silver", delta.adopt(staged / "silver", tables / "silver", delta.prefix(batch))
    )
    shutil.rmtree(staged)
    write_commit(
        data / "checkpoints" / "tables", Commit(batch, {f"{batch}": Mark(1, 1)}, counts, {}, (), ())
    )


def numbered(
    schema: pa.Schema, column: str, batch: int, count: int, others: dict[str, int]
) -> pa.Table:
    values = {column: batch * ROWS + np.arange(count)}
    values |= {name: np.full(count, value) for name, value in others.items()}
    arrays = [
        pa.array(values[field.name])
        .cast(pa.int32() if field.type == pa.date32() else field.type)
        .cast(field.type)
        if field.name in values
        else pa.nulls(count, field.type)
        for field in schema
    ]
    return pa.table(arrays, schema=schema)


def made(data: Path) -> Path:
    (data / "checkpoints" / "tables").mkdir(parents=True)
    on_disk.create(data / "tables")
    for batch in range(1, BATCHES + 1):
        add(data, batch)
    return data


def compacting(data: Path) -> "subprocess.Popen[bytes]":
    """Start the command; return once it has loaded what it needs, and begins."""
    arguments = [sys.executable, "-c", COMPACT, str(data / "tables")]
    running = subprocess.Popen(arguments, stdout=subprocess.PIPE)
    assert running.stdout is not None
    running.stdout.readline()
    return running


def wrong_tables(data: Path) -> list[str]:
    """Return the tables in which a row is missing or stands twice, as any reader sees them."""
    wrong = []
    for table, column in NUMBER.items():
        root = data / "tables" / table
        if table == "silver":
            found = delta.read(root, [column])[column]
        else:
            found = ds.dataset(root, partitioning="hive").to_table(columns=[column])[column]
        count = ROWS // 100 if table == "quarantine" else ROWS
        batches = np.arange(1, BATCHES + 1)[:, None]
        expected = (batches * ROWS + np.arange(count)).ravel()
        if not np.array_equal(np.sort(found.to_numpy()), expected):
            wrong.append(f"{table}: {len(found):,} rows, {len(expected):,} expected")
    return wrong


@pytest.mark.uncovered
def test_a_kill_at_any_moment_loses_and_doubles_nothing(tmp_path: Path) -> None:
    whole = made(tmp_path / "made")
    undisturbed = shutil.copytree(whole, tmp_path / "undisturbed")
    with compacting(undisturbed) as running:
        begun = time.monotonic()
        running.communicate()
    seconds = time.monotonic() - begun
    assert wrong_tables(undisturbed) == []
    files = sum(1 for _ in (undisturbed / "tables").rglob("*.parquet"))
    chance = random.Random(7)
    found = left_behind(undisturbed, -1)
    killed = 0
    for trial in range(KILLS or 2):
        data = shutil.copytree(whole, tmp_path / "data")
        for _ in range(1 + trial % 2):  # the command after a kill is killed too, in each other
            moment = chance.uniform(0, seconds)
            with compacting(data) as running:
                time.sleep(moment)
                running.kill()
            killed += running.returncode != 0
            found += [f"{trial}, killed at {moment:.3f} s: {each}" for each in wrong_tables(data)]
        with compacting(data) as running:
            running.communicate()
        found += [f"{trial}, after the next: {each}" for each in wrong_tables(data)]
        found += left_behind(data, trial)
        assert running.returncode == 0
        shutil.rmtree(data)
    print(f"{killed} kills within {seconds:.2f} s, {files} files in the end")
    assert found == []
    assert killed


def left_behind(data: Path, trial: int) -> list[str]:
    committed = load(data / "checkpoints" / "tables")
    names = {path.name for path in (data / "tables").iterdir()}
    names |= {path.name for path in (data / "checkpoints" / "tables").glob("joining*")}
    left = names - {"bronze", "quarantine", *on_disk.IN_DELTA}
    wrong = damaged(data / "tables", committed, verify=True)
    joined = len(committed.batches) < BATCHES
    return [f"{trial}: {left} {wrong}"] if left or wrong or not joined else []
