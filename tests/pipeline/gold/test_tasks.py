"""The work of gold's tasks in this process: in any number of them and of portions the same rows."""

import pickle
import random
import subprocess
import sys
from datetime import UTC, date, datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from pipeline.gold import tasks, windows
from pipeline.gold.days import Days
from pipeline.gold.readings import CARRIED
from pipeline.gold.silences import TABLE as SILENCES
from pipeline.gold.silences import Lacking, write_near
from pipeline.gold.tasks import NO_ALIASES, Bucket, Job, SilverFile, by_bucket
from pipeline.gold.windows import LENGTHS, LOCAL, Windows
from pipeline.place import place_of
from pipeline.tables import delta
from pipeline.tables.columns import GAPS, SILVER, arrow_schema
from pipeline.tables.task_files import TaskFiles

DAY = date(2025, 11, 21)
BEGIN = int(datetime(2025, 11, 21, tzinfo=UTC).timestamp() * 1_000_000)
NOW_MS = BEGIN // 1_000 + 2 * 86_400_000
CHANCE = random.Random(3)


def silver_row(seq: int) -> dict[str, Any]:
    state = CHANCE.random() < 0.3
    return {
        "gateway_id": CHANCE.choice(("barn", "mill", "shed")), "node": CHANCE.choice(("n1", "n2")),
        "quantity": "door" if state else "t", "instance": CHANCE.choice((None, "a")),
        "epoch": "0a", "stream": "main", "seq": seq,
        "event_time": BEGIN + CHANCE.randrange(86_400_000) * 1_000, "received": NOW_MS,
        "value": None if state else CHANCE.random(), "resent": seq % 2 == 0, "bytes": 10,
        "value_text": CHANCE.choice(("open", "shut")) if state else None, "unit": "C",
        "quality": CHANCE.choice((None, "bad")), "lateness_ms": CHANCE.randrange(10**7),
        "event_date": DAY,
    }  # fmt: skip


@pytest.fixture(scope="module")
def silver(tmp_path_factory: pytest.TempPathFactory) -> SilverFile:
    """Return a file of 300 readings of a day."""
    rows = [silver_row(seq) for seq in range(1, 301)]
    path = tmp_path_factory.mktemp("silver") / "part.parquet"
    pq.write_table(pa.Table.from_pylist(rows, schema=arrow_schema(SILVER)), path)
    return SilverFile(place_of(path.parent), path.name, len(rows))


def made(job: Job, file: SilverFile, target: Path, count: int) -> dict[str, set[str]]:
    """Return the rows of each table that so many tasks write, and check that each had its own."""
    buckets: dict[int, list[pa.Table]] = {}
    for bucket, packed in by_bucket([file], [DAY], job, count):
        buckets.setdefault(bucket, []).append(pa.ipc.open_stream(packed).read_all())
    assert count == 1 or len(buckets) > 1
    for bucket, parts in buckets.items():
        with TaskFiles(place_of(target)) as out:
            job.write(pa.concat_tables(parts), Bucket(bucket, count), out)
    found: dict[str, set[str]] = {}
    for table in {path.relative_to(target).parts[0] for path in target.rglob("*.parquet")}:
        rows = pq.read_table(target / table, partitioning=None).to_pylist()
        found[table] = {str(row) for row in rows}
        assert len(found[table]) == len(rows)
    return found


@pytest.fixture(scope="module")
def jobs(tmp_path_factory: pytest.TempPathFactory) -> dict[str, tuple[set[str], Job]]:
    root = tmp_path_factory.mktemp("tables")
    delta.create(root / "gaps", GAPS)
    gap = {"gateway": "barn", "epoch": "0a", "stream": "main", "first": 301, "last": 302}
    within = datetime(2025, 11, 21, 12, tzinfo=UTC)
    gap |= {"outcome": "filtered", "after": within, "before": within}
    delta.append(root / "gaps", GAPS, [gap])
    near = write_near(place_of(root), DAY, DAY)
    earlier = {
        "gateway_id": "barn", "node": "n3", "quantity": "t", "value": 1.0,
        "event_time": datetime(2025, 11, 20, 22, tzinfo=UTC),
    }  # fmt: skip
    carried = pa.Table.from_pylist([earlier], schema=arrow_schema(CARRIED))
    dates = (DAY, date(2025, 11, 22))
    lacking = Lacking(place_of(root), near, NO_ALIASES)
    quarantined = {("barn", DAY): {"not_json": 2}, ("loft", DAY): {"not_json": 1, "seq": 3}}
    readings = Windows(carried, {"barn": NOW_MS}, NOW_MS, dates, lacking)
    return {
        "readings": ({*LENGTHS, SILENCES}, readings),
        "local": ({LOCAL}, Windows(carried, {}, NOW_MS, dates, lacking, {"barn": "Asia/Tokyo"})),
        "days": ({"gateway_day", "node_day"}, Days(quarantined)),
    }


@pytest.mark.parametrize("name", ["readings", "local", "days"])
def test_rows_are_the_same_in_few_and_many_parts(
    name: str,
    jobs: dict[str, tuple[set[str], Job]],
    silver: SilverFile,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    tables, job = jobs[name]
    whole = made(job, silver, tmp_path / "whole", 1)
    assert whole.keys() == tables
    assert all(whole.values())
    monkeypatch.setattr(windows, "PIECES", 7)
    monkeypatch.setattr(tasks, "ROWS_READ", 11)
    parts = made(job, silver, tmp_path / "parts", 2)
    for table, rows in whole.items():
        missing = {row for row in rows - parts[table] if "'loft'" not in row}
        assert not missing, table
        assert parts[table] <= rows, table


LOADED = """
import pickle, sys
from pathlib import Path
import pyarrow as pa
from pipeline.gold.tasks import Bucket, by_bucket
from pipeline.place import Place
from pipeline.tables.task_files import TaskFiles
day, file, *jobs = pickle.load(sys.stdin.buffer)
for job in jobs:
    (_, packed), = by_bucket([file], [day], job, 1)
    with TaskFiles(Place(sys.argv[1])) as out:
        job.write(pa.ipc.open_stream(packed).read_all(), Bucket(0, 1), out)
print("pandas" in sys.modules, len(list(Path(sys.argv[1]).rglob("*.parquet"))) > 0)
"""


def test_a_task_loads_no_pandas(
    silver: SilverFile, jobs: dict[str, tuple[set[str], Job]], tmp_path: Path
) -> None:
    given = pickle.dumps([DAY, silver, *(job for _, job in jobs.values())])
    command = [sys.executable, "-c", LOADED, str(tmp_path)]
    found = subprocess.run(command, input=given, check=True, capture_output=True)
    assert found.stdout == b"False True\n"
