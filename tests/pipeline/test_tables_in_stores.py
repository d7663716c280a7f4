"""Tables in moto's S3 and in Azurite: the rows of a local run, whatever happens to a run there."""

import json
import subprocess
import sys
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import duckdb
import pytest
from deltalake import DeltaTable
from pyarrow.fs import SubTreeFileSystem

import tidegate_pipeline
from pipeline.errors import BusyError, JobError
from pipeline.operation import maintain
from pipeline.operation.once import How, Totals, run_once
from pipeline.place import Place
from pipeline.settings import Settings, make_settings
from pipeline.tables import delta
from pipeline.tables.lease import held
from tests.support.disk.landing_files import EPOCH, TIME, put, put_records, record, text_of
from tests.support.object_store import S3Server
from tests.support.pipeline_kills import Killed, kill_at
from tests.support.waiting import until

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark

AZURE = pytest.param("azure", marks=pytest.mark.azurite)
DAY = 86_400_000
FRESH = 1000
"""What a clock says that was not set."""
SHOWN = ("bronze", "silver", "quarantine", "gaps", "streams", "readings_1d", "gateway_day")
UNLIKE = ("batch", "made", "last_time")
"""Columns that may differ between two runs over the same files."""

Rows = dict[str, Counter[str]]


def land(data: Path) -> None:
    """Put records of two days, a duplicate, a conflict, and a line that is no record."""
    fresh = [record(n, time=FRESH + n) for n in (1, 2, 2)]
    put_records(data / "landing", [*fresh, record(9), b"null"])
    late = record(3, time=TIME + DAY, received=TIME + DAY)
    put_records(data / "landing", [record(2, content=b"z"), late], first=2)


def more(data: Path) -> None:
    """Put a late record, and the clock record by which the times of two others are known."""
    put_records(data / "landing", [record(4), record(9)], first=4)
    clock = {"epoch": EPOCH, "offset_ms": TIME - FRESH, "uncertainty_ms": 70, "from": 0, "to": 9999}
    clock |= {"numbers": {"main": [1, 2]}, "boot": "b", "uptime_ms": 0}
    put(data / "landing" / "barn", text_of([clock]), f"{EPOCH}.1.jsonl", gateway="clock")


@pytest.fixture
def store(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Place:
    """Return a place in a store."""
    place: Place = request.getfixturevalue(f"{getattr(request, 'param', 's3')}_place")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return place


def rows_of(tables: Place) -> Rows:
    """Return the rows of tables as a reader of Delta finds them by Arrow."""
    found: Rows = {}
    for table in SHOWN:
        place = tables / table
        files = SubTreeFileSystem(place.path(), place.files)
        opened = DeltaTable(place.url, storage_options=place.options)
        rows = opened.to_pyarrow_table(filesystem=files).to_pylist()
        for row in rows:
            for name in UNLIKE:
                row.pop(name, None)
        found[table] = Counter(json.dumps(row, default=str, sort_keys=True) for row in rows)
    return found


def settings_for(data: Path, tables: Place) -> Settings:
    return make_settings(data / "landing", tables)


@pytest.fixture(scope="module")
def local(spark: "SparkSession", tmp_path_factory: pytest.TempPathFactory) -> tuple[Rows, Rows]:
    """Return the rows of a local run after each of two landings."""
    data, found = tmp_path_factory.mktemp("local"), list[Rows]()
    settings = make_settings(data / "landing", data / "tables")
    for act in (land, more):
        act(data)
        run_once(settings, lambda: spark)
        found.append(rows_of(settings.tables))
    return found[0], found[1]


@pytest.mark.parametrize("store", ["s3", AZURE], indirect=True)
def test_tables_are_what_a_local_run_makes(
    store: Place, session: "Callable[[], SparkSession]", local: tuple[Rows, Rows], tmp_path: Path
) -> None:
    settings = settings_for(tmp_path, store / "tables")
    for act, expected in zip((land, more), local, strict=True):
        act(tmp_path)
        tidegate_pipeline.run(session(), tmp_path / "landing", settings.tables.name)
        assert rows_of(settings.tables) == expected
    assert run_once(settings, session, How(verify=True)).files == 0
    before = rows_of(settings.tables)
    assert maintain.compact(settings).files_after > 0
    maintain.vacuum(settings, 0)
    assert rows_of(settings.tables) == before
    assert run_once(settings, session).silver == sum(before["silver"].values())
    silver = settings.tables / "silver"
    files = SubTreeFileSystem(silver.path(), silver.files)
    rows = DeltaTable(silver.url, storage_options=silver.options)
    with duckdb.connect() as database:
        database.register("silver", rows.to_pyarrow_dataset(filesystem=files))
        [(count,)] = database.execute("SELECT count(*) FROM silver").fetchall()
    assert count == sum(before["silver"].values())


KILLS = [
    ("pipeline.batches.run_batch.write_landing", 1, True),
    ("pipeline.tables.delta.commit", 1, True),
    ("pipeline.tables.delta.commit", 3, False),
    ("pipeline.tables.delta.commit", 5, True),
    ("pipeline.gold.make.run", 1, True),
    ("pipeline.tables.delta.replace", 2, True),
]


def test_kills_at_commits_leave_nothing_behind(
    store: Place, session: "Callable[[], SparkSession]", local: tuple[Rows, Rows], tmp_path: Path
) -> None:
    settings = settings_for(tmp_path, store / "tables")
    land(tmp_path)
    for place, call, after in KILLS:
        with pytest.MonkeyPatch.context() as patch:
            kill_at(patch, place, call, after=after)
            with pytest.raises(Killed):
                run_once(settings, session)
    run_once(settings, session)
    assert rows_of(settings.tables) == local[0]


def test_a_driver_that_is_killed_is_replaced_at_once(
    store: Place,
    s3: S3Server,
    session: "Callable[[], SparkSession]",
    local: tuple[Rows, Rows],
    tmp_path: Path,
) -> None:
    """Their landing files are in the store too: tasks have the environment of what starts Java."""
    land(tmp_path)
    for file in (tmp_path / "landing").rglob("*.jsonl"):
        name = file.relative_to(tmp_path).as_posix()
        store.create(name, file.read_bytes())
    command = [sys.executable, "-m", "pipeline.cli", "once", "--java-cache", "none"]
    command += ["--landing", str(store / "landing"), "--tables", str(store / "tables")]
    log = tmp_path / "said"
    with log.open("wb") as out, subprocess.Popen(command, stdout=out, stderr=out) as first:
        until(lambda: bool(s3.objects(f"{store}/tables/silver")), "a file of silver")
        first.kill()
    assert log.read_text() == ""
    run_once(make_settings(store / "landing", store / "tables"), session)
    assert rows_of(store / "tables") == local[0]


def test_a_store_that_throttles_or_fails_is_told_and_the_next_run_goes_on(
    store: Place,
    s3: S3Server,
    session: "Callable[[], SparkSession]",
    local: tuple[Rows, Rows],
    tmp_path: Path,
) -> None:
    settings = settings_for(tmp_path, store / "tables")
    land(tmp_path)
    s3.throttle(3)
    run_once(settings, session)
    assert rows_of(settings.tables) == local[0]
    more(tmp_path)
    s3.throttle(1_000_000)
    with pytest.raises(JobError, match=r"cannot (work on|reach|list) s3://"):
        run_once(settings, session)
    s3.throttle(0)
    run_once(settings, session)
    assert rows_of(settings.tables) == local[1]


def test_a_list_that_is_late_costs_a_run_and_no_row(
    store: Place,
    s3: S3Server,
    session: "Callable[[], SparkSession]",
    local: tuple[Rows, Rows],
    tmp_path: Path,
) -> None:
    settings = settings_for(tmp_path, store / "tables")
    land(tmp_path)
    run_once(settings, session)
    more(tmp_path)
    with s3.listing_late():
        for _ in range(2):
            try:
                run_once(settings, session)
            except (BusyError, JobError):
                continue
    run_once(settings, session)
    assert rows_of(settings.tables) == local[1]


def test_of_two_drivers_one_is_busy_and_one_that_lost_its_lease_commits_nothing(
    store: Place, session: "Callable[[], SparkSession]", local: tuple[Rows, Rows], tmp_path: Path
) -> None:
    settings = settings_for(tmp_path, store / "tables")
    land(tmp_path)
    with held(settings.tables), pytest.raises(BusyError, match="another tidegate-pipeline works"):
        run_once(settings, session)
    totals: list[Totals] = []
    commit = delta.commit

    def overtaken(*arguments: object, **options: object) -> None:
        """Let another driver do all work, as if this one had stood still, before its commit."""
        patch.undo()
        lose_the_lease(settings.tables)
        number = delta.LEASE.get()
        token = delta.LEASE.set(0)
        totals.append(run_once(settings, session))
        delta.LEASE.reset(token)
        assert delta.LEASE.get() == number
        commit(*arguments, **options)  # type: ignore[arg-type]

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(delta, "commit", overtaken)
        with pytest.raises(BusyError, match="took these tables over"):
            run_once(settings, session)
    assert totals[0].silver == sum(local[0]["silver"].values())
    assert rows_of(settings.tables) == local[0]


def lose_the_lease(tables: Place) -> None:
    """Let the holder of the lease look as one of another machine that is long silent."""
    from pipeline.tables import lease

    log = lease._log(tables)
    holder = lease._holder(log)
    assert holder is not None
    lease._note(tables, log, holder._replace(host="elsewhere", sign=0.0))
    lease._here.discard(tables.name)
