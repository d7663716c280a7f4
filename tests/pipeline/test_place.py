"""Landing files in folders, in moto's S3 and in Azurite, by one interface."""

import os
import time
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO

import pytest

from pipeline import place
from pipeline.cli import main
from pipeline.collect.landing_writer import LandingWriter
from pipeline.collect.message import Landed
from pipeline.errors import JobError, PipelineError
from pipeline.landing import listing
from pipeline.landing.listing import DEEPER, list_landing
from pipeline.operation.once import How, run_once
from pipeline.place import Place, place_of
from pipeline.records.record import read_fields
from pipeline.settings import make_settings
from tests.support.disk.landing_files import name_for, record, text_of
from tests.support.object_store import S3Server
from tests.support.pipeline_tables import sizes

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

AZURE = pytest.param("azure", marks=pytest.mark.azurite)
REPORT = b'{"epoch":"00a1b2c3d4","start":1,"previous":null,"stream":"main","ranges":[]}'


@pytest.fixture(params=["folder", "s3", AZURE])
def landing(request: pytest.FixtureRequest, tmp_path: Path) -> Place:
    """Return an empty landing folder of each kind."""
    if request.param == "folder":
        (tmp_path / "landing").mkdir()
        return place_of(tmp_path / "landing")
    store: Place = request.getfixturevalue(f"{request.param}_place")
    return store / "landing"


def land(place: Place, *numbers: int) -> None:
    """Put records, a line that is none and a ledger's report, as a collector does."""
    values = [read_fields(record(number))[0] for number in numbers]
    landed = Landed(records=values, faults=[b"{"], reports=[("barn", "ledger", REPORT)])
    assert len(LandingWriter(place, "c").write([landed])) == 3


def test_what_is_no_place_is_named() -> None:
    for wrong in (
        "s3:/fleet",
        "s3://Fleet/x",
        "https://a/b",
        "abfss://host.dfs.net/x",
        "s3://a//b",
    ):
        with pytest.raises(PipelineError, match="is not s3://BUCKET"):
            place_of(wrong)
    below = place_of("abfss://fleet@barn.dfs.core.windows.net/a/") / "b"
    assert (below.path(), below.path("c"), below.folder) == ("fleet/a/b", "fleet/a/b/c", None)
    assert place_of("s3://fleet").path("x") == "fleet/x"
    assert place_of("x").folder == Path.cwd() / "x"


@pytest.mark.spark
@pytest.mark.parametrize("landing", ["s3", AZURE], indirect=True)
def test_a_run_reads_what_was_put(
    landing: Place, session: "Callable[[], SparkSession]", tmp_path: Path
) -> None:
    settings = make_settings(landing, tmp_path / "tables")

    def run() -> tuple[int, ...]:
        return (run_once(settings, session, How(gold=False)).files, *sizes(tmp_path))

    assert run() == (0, 0, 0, 0)
    land(landing, 1, 2)
    landing.create(f"barn/{name_for(1, 3)}", text_of([record(3)]))
    land(landing, 2, 4)
    assert run() == (5, 5, 4, 2)
    assert run() == (0, 5, 4, 2)


def test_a_store_is_listed_as_a_folder_is(landing: Place, tmp_path: Path) -> None:
    names = (
        *("top.jsonl", "barn/a.jsonl", "barn/ledger/b.jsonl", "barn/clock/c.jsonl"),
        *("20251120/c-1.parquet", "barn/x.csv", "barn/ledger/y.parquet", "barn/deep/z.jsonl"),
        *("barn/ledger/deep/z.jsonl", ".hidden/a.jsonl", "barn/_b.jsonl", "barn/.c.tmp"),
    )
    for name in names:
        landing.create(name, b"{}")
    found = list_landing(landing)
    assert sorted(found.files) == sorted(names[:5])
    assert {mark.size for mark in found.files.values()} == {2}
    assert all(abs(mark.mtime / 1e9 - time.time()) < 100 for mark in found.files.values())
    assert found.left["barn/deep"] == found.left["barn/ledger/deep"] == DEEPER
    assert found.left.keys() - {"barn/deep", "barn/ledger/deep"} == {
        "barn/x.csv",
        "barn/ledger/y.parquet",
    }


def test_folders_of_past_days_are_listed_once_a_day(
    s3: S3Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    s3.files.create_dir("days")
    landing = place_of("s3://days")
    today = datetime.now(UTC)
    days = [f"{today - timedelta(days=ago):%Y%m%d}" for ago in (0, 1, 5)]
    for folder in (*days, "barn"):
        landing.create(f"{folder}/a.jsonl", b"{}")
    first = list_landing(landing)
    assert list(first.settled) == [f"{days[2]}/"]
    landing.create(f"{days[2]}/late.jsonl", b"{}")
    again = list_landing(landing, first.settled)
    assert f"{days[2]}/late.jsonl" not in again.files
    assert len(again.files) == 3
    monkeypatch.setattr(listing, "_DAY_NS", 0)
    assert f"{days[2]}/late.jsonl" in list_landing(landing, first.settled).files


def test_what_a_late_list_lacks_is_read_later(s3: S3Server) -> None:
    s3.files.create_dir("late-lists")
    landing = place_of("s3://late-lists/landing")
    landing.create("barn/a.jsonl", b"{}")
    with s3.listing_late():
        landing.create("barn/b.jsonl", b"{}")
        assert list(list_landing(landing).files) == ["barn/a.jsonl"]
    assert list(list_landing(landing).files) == ["barn/a.jsonl", "barn/b.jsonl"]


def test_an_object_of_no_bytes_is_one_that_is_being_written(s3: S3Server) -> None:
    s3.files.create_dir("empty")
    landing = place_of("s3://empty/landing")
    landing.create("barn/a.jsonl", b"")
    assert list_landing(landing).files == {}


def test_a_store_that_throttles_is_asked_again(s3: S3Server) -> None:
    s3.files.create_dir("slow")
    landing = place_of("s3://slow/landing")
    for requests in (1, 3):
        s3.throttle(requests)
        landing.create(f"barn/{requests}.jsonl", b"{}\n")
        s3.throttle(requests)
        assert f"barn/{requests}.jsonl" in list_landing(landing).files
        s3.throttle(requests)
        with landing.open(f"barn/{requests}.jsonl") as file:
            s3.throttle(requests)
            assert file.readline() == b"{}\n"


def test_a_store_that_fails_is_no_damage(s3: S3Server, monkeypatch: pytest.MonkeyPatch) -> None:
    """Else a file would be in the quarantine for ever, since a connection broke."""
    from pipeline.landing.landing_parquet import read_landing_parquet

    s3.files.create_dir("down")
    landing = place_of("s3://down/landing")
    land(landing, 1)
    (name,) = (name for name in list_landing(landing).files if name.endswith(".parquet"))
    monkeypatch.setattr(place, "_ATTEMPTS", 1)
    place._file_system.cache_clear()
    opened = landing.open
    monkeypatch.setattr(Place, "open", lambda _, name: slowed(s3, opened(name)))
    with pytest.raises(JobError, match=f"cannot read {landing}/{name}: "):
        list(read_landing_parquet(landing, name))
    monkeypatch.undo()
    for variable, value in s3.environment.items():
        monkeypatch.setenv(variable, value)
    s3.throttle(1_000)
    place._file_system.cache_clear()
    monkeypatch.setattr(place, "_ATTEMPTS", 1)
    with pytest.raises(JobError, match="cannot list"):
        list_landing(landing)
    with pytest.raises(OSError, match="Reduce your request rate"):
        landing.create("barn/x.jsonl", b"{}")
    with pytest.raises(JobError, match="cannot reach"):
        landing.exists()
    s3.throttle(0)
    place._file_system.cache_clear()
    with pytest.raises(FileNotFoundError):
        landing.open("barn/none.jsonl")


def slowed(s3: S3Server, file: BinaryIO) -> BinaryIO:
    s3.throttle(1_000)
    return file


def test_a_bucket_that_is_not_there_is_said(
    s3: S3Server, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    command = ["status", "--landing", "s3://no-such-bucket/x", "--tables", str(tmp_path)]
    assert main(command) == 2
    assert "there is no landing folder s3://no-such-bucket/x" in capsys.readouterr().err


def test_nothing_in_a_folder_is_replaced(tmp_path: Path) -> None:
    landing = place_of(tmp_path)
    landing.create("barn/a.jsonl", b"1")
    with pytest.raises(FileExistsError):
        landing.create("barn/a.jsonl", b"2")
    assert [os.fspath(path.relative_to(tmp_path)) for path in tmp_path.rglob("*.*")] == [
        "barn/a.jsonl"
    ]
