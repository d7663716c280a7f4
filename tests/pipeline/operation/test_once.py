import os
import shutil
import socket
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

import pytest

from pipeline.errors import JobError, PipelineError
from pipeline.place import Place, place_of
from pipeline.records import reasons
from pipeline.settings import BatchSize, make_settings
from pipeline.tables import delta, state
from pipeline.tables.columns import SILVER
from tests.support.disk.landing_files import (
    EPOCH,
    GATEWAY,
    name_for,
    put,
    put_records,
    reading,
    record,
    text_of,
)
from tests.support.pipeline_tables import TABLES, rows, sizes, table_rows

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from pipeline.operation.once import Totals

    Run = Callable[..., Totals]

pytestmark = pytest.mark.spark


def key_of(row: dict[str, object]) -> tuple[object, ...]:
    return tuple(row[name] for name in ("gateway_id", "epoch", "stream", "seq"))


def counts(totals: "Totals") -> tuple[int, int, int]:
    return totals.bronze, totals.silver, totals.quarantined


# One landing folder with something of everything.

BINARY = record(4, content=b"\xff\x00\xfe", topic="cameras/yard", qos=0, retain=True, resent=True)
BIG = record(5, content=b"x" * 3_000_000, topic="files/log")
OF_SHED = record(1, gateway_id="shed", properties=[["a", "1"], ["a", "2"]], username="ann")


@pytest.fixture(scope="module")
def mixed(tmp_path_factory: pytest.TempPathFactory, run: "Run") -> "tuple[Path, Totals]":
    data = tmp_path_factory.mktemp("mixed")
    landing = data / "landing"
    put_records(landing, [record(1), record(2), record(3)])
    put_records(landing, [BINARY, BIG, record(5, content=b"y"), b'{"seq":NaN}'], first=4)
    put(landing, text_of([record(3), record(6)]), name_for(2, 3, 6))  # re-sent, another name
    put(landing, text_of([record(7)]) + b'{"gate', name_for(3, first=7))
    put(landing, text_of([record("8"), record(0)]), name_for(1, first=8))
    put_records(landing, [OF_SHED], gateway="shed")
    put(landing / GATEWAY, text_of([b'{"n":1}']), f"{EPOCH}.1.jsonl", gateway="ledger")
    put(landing, text_of([record(99)]), f".{name_for(1, first=99)}")
    return data, run(data)


@pytest.fixture
def data(mixed: "tuple[Path, Totals]") -> Path:
    return mixed[0]


@pytest.mark.uncovered
def test_the_totals_are_what_is_in_the_tables(mixed: "tuple[Path, Totals]") -> None:
    data, totals = mixed
    assert counts(totals) == (10, 8, 7)
    assert counts(totals) == sizes(data)
    assert totals.files == 6
    assert totals.reasons == {
        reasons.KEY_CONFLICT: 1,
        reasons.KEY_INVALID: 2,
        reasons.LEDGER_INVALID: 1,
        reasons.NOT_JSON: 1,
        reasons.SURPLUS_LINES: 1,
        reasons.TRUNCATED: 1,
    }
    assert totals.left == {}


def test_bronze_has_every_record_as_it_came(data: Path) -> None:
    found = rows(data, "bronze")
    seqs = Counter((row["gateway_id"], row["seq"]) for row in found)
    assert seqs == {
        ("barn", 1): 1,
        ("barn", 2): 1,
        ("barn", 3): 2,
        ("barn", 4): 1,
        ("barn", 5): 2,
        ("barn", 6): 1,
        ("barn", 7): 1,
        ("shed", 1): 1,
    }
    (binary,) = (row for row in found if row["seq"] == 4)
    assert binary["payload"] == b"\xff\x00\xfe"
    assert (binary["qos"], binary["retain"], binary["resent"]) == (0, True, True)
    (of_shed,) = (row for row in found if row["gateway_id"] == "shed")
    assert of_shed["properties"] == [{"name": "a", "value": "1"}, {"name": "a", "value": "2"}]
    assert (of_shed["username"], of_shed["clientid"]) == ("ann", None)
    assert of_shed["landing_file"] == f"shed/{name_for(1)}"


def test_silver_has_one_row_for_each_key(data: Path) -> None:
    found = rows(data, "silver")
    assert len({key_of(row) for row in found}) == len(found) == 8
    assert {key_of(row) for row in found} == {key_of(row) for row in rows(data, "bronze")}
    (binary,) = (row for row in found if row["seq"] == 4)
    assert (binary["node"], binary["decode_error"]) == (None, "not UTF-8 at byte 1")
    (big,) = (row for row in found if row["seq"] == 5)
    assert big["value_text"] == "x" * 3_000_000


def test_a_fault_keeps_what_could_be_read(data: Path) -> None:
    by_reason = {row["reason"]: row for row in rows(data, "quarantine")}
    conflict = by_reason[reasons.KEY_CONFLICT]
    assert (conflict["seq"], conflict["payload"], conflict["line"]) == (5, b"y", 3)
    assert by_reason[reasons.NOT_JSON]["raw"] == b'{"seq":NaN}'
    assert by_reason[reasons.TRUNCATED]["raw"] == b'{"gate'
    assert by_reason[reasons.KEY_INVALID]["gateway_id"] == "barn"


def test_a_record_is_in_bronze_or_in_quarantine(data: Path) -> None:
    def places(table: str) -> set[tuple[object, object]]:
        return {
            (row["landing_file"], row["line"])
            for row in rows(data, table)
            if row.get("reason") not in {*reasons.OF_A_RECORD, *reasons.OF_A_FILE}
        }

    assert not places("bronze") & places("quarantine")


def test_running_again_changes_nothing_and_needs_no_spark(data: Path) -> None:
    from pipeline.operation.once import How, run_once

    def forbidden() -> NoReturn:
        raise AssertionError("there is nothing to do")

    def inside() -> dict[Path, int]:
        """Return when the files of each table were last changed."""
        return {path: path.stat().st_mtime_ns for path in (data / "tables").glob("[!_]*/**/*")}

    before = inside()
    assert before
    settings = make_settings(data / "landing", data / "tables")
    totals = run_once(settings, forbidden, How(gold=False))
    assert counts(totals) == (10, 8, 7)
    assert totals.files == 0
    assert inside() == before


def test_any_spark_reads_the_tables(data: Path, run: "Run") -> None:
    from pyspark.sql import SparkSession

    spark = SparkSession.active()
    silver = spark.read.parquet(f"{data}/tables/silver")
    types = dict(silver.dtypes)
    assert (types["seq"], types["event_time"], types["event_date"]) == (
        "bigint",
        "timestamp",
        "date",
    )
    assert silver.where("event_date = date'2025-11-21' and quantity = 'temperature'").count() == 6


# Later files, in order and out of it.


@pytest.mark.uncovered
def test_a_file_that_changes_at_its_size_is_read_again_and_adds_no_row(
    tmp_path: Path, run: "Run"
) -> None:
    landing = tmp_path / "landing"
    path = put_records(landing, [record(1), record(2, content=reading(11))])
    assert counts(run(tmp_path)) == (2, 2, 0)
    size = path.stat().st_size
    put_records(landing, [record(1), record(2, content=reading(99))])
    assert path.stat().st_size == size
    totals = run(tmp_path)
    assert counts(totals) == (4, 2, 1)
    assert totals.reasons == {reasons.KEY_CONFLICT: 1}
    assert {row["seq"]: row["value"] for row in rows(tmp_path, "silver")} == {1: 21.5, 2: 11.0}


@pytest.mark.uncovered
def test_new_files_are_added_and_known_keys_are_not(tmp_path: Path, run: "Run") -> None:
    landing = tmp_path / "landing"
    put_records(landing, [record(1), record(2)])
    assert counts(run(tmp_path)) == (2, 2, 0)
    put_records(landing, [record(2, resent=True), record(3)], first=2)
    put_records(landing, [record(1, content=reading(99))])  # the name exists: another size
    totals = run(tmp_path)
    assert counts(totals) == (5, 3, 1)
    assert totals.files == 2
    assert totals.reasons == {reasons.KEY_CONFLICT: 1}
    assert {row["seq"]: row["value"] for row in rows(tmp_path, "silver")} == {
        1: 21.5,
        2: 21.5,
        3: 21.5,
    }


@pytest.mark.uncovered
def test_a_batch_knows_the_ones_before_it(tmp_path: Path, run: "Run") -> None:
    landing = tmp_path / "landing"
    put_records(landing, [record(1), record(2)])
    put(landing, text_of([record(2), record(1, content=b"z")]), name_for(2, 1, 3))
    put_records(landing, [b"[]"], first=9)
    totals = run(tmp_path, batch=BatchSize(files=1))
    assert counts(totals) == (4, 2, 2)
    assert sorted(row["batch"] for row in table_rows(tmp_path, "bronze")) == [1, 1, 2, 2]


@pytest.mark.uncovered
def test_a_batch_has_few_rows_however_small_its_files_are(tmp_path: Path, run: "Run") -> None:
    from pipeline.collect.landing_writer import LandingWriter
    from pipeline.collect.message import Landed
    from pipeline.records.record import read_fields

    put_records(tmp_path / "landing", [record(seq) for seq in range(1, 5)], first=1)
    writer = LandingWriter(place_of(tmp_path / "landing"), "c")
    for first in range(5, 17, 3):
        writer.write([Landed(records=[read_fields(record(first + n))[0] for n in range(3)])])
    cut = max((tmp_path / "landing").glob("2*/*.parquet"))
    cut.write_bytes(cut.read_bytes()[:-9])
    totals = run(tmp_path, batch=BatchSize(rows=7))
    assert counts(totals) == (13, 13, 1)
    by_batch = Counter(row["batch"] for row in table_rows(tmp_path, "bronze"))
    assert by_batch == {1: 6, 2: 7}
    assert run(tmp_path, batch=BatchSize(rows=7)).files == 0


@pytest.mark.uncovered
def test_any_folder_name_will_do(tmp_path: Path, run: "Run") -> None:
    data = tmp_path / "a b[c]{d}*?ä'é#"
    put_records(data / "landing", [record(1)])
    assert counts(run(data)) == (1, 1, 0)
    put(data / "landing", text_of([record(1, resent=True), record(2)]), name_for(2, 1))
    assert counts(run(data)) == (3, 2, 0)


@pytest.mark.uncovered
def test_what_a_collector_wrote_is_read_as_lines_are(tmp_path: Path, run: "Run") -> None:
    from pipeline.collect.landing_writer import LandingWriter
    from pipeline.collect.message import Landed
    from pipeline.records.record import read_fields

    put_records(tmp_path / "landing", [record(1), record(2)])
    values = [read_fields(record(seq, properties=[["a", "1"]]))[0] for seq in (2, 3)]
    line = b'{"epoch":"00a1b2c3d4","start":1,"previous":null,"stream":"main","ranges":[]}'
    reported = [(gateway, "ledger", line) for gateway in ("barn", "mill")]
    landed = Landed(records=values, faults=[b'{"seq":"x"}'], reports=reported)
    assert len(LandingWriter(place_of(tmp_path / "landing"), "c").write([landed])) == 3
    totals = run(tmp_path)
    assert (counts(totals), totals.reasons) == ((4, 3, 1), {reasons.KEY_INCOMPLETE: 1})
    told = [(row["gateway_id"], row["reporter"]) for row in table_rows(tmp_path, "ledger")]
    assert told == [("barn", "00a1b2c3d4"), ("mill", "00a1b2c3d4")]
    (cut,) = (tmp_path / "landing").glob("2*/*.parquet")
    cut.write_bytes(cut.read_bytes()[:-9])
    totals = run(tmp_path)
    assert (counts(totals), totals.reasons[reasons.FILE_UNREADABLE]) == ((4, 3, 2), 1)


# Nothing to read, and what cannot be read.


def test_a_missing_landing_folder_gives_empty_tables(tmp_path: Path, run: "Run") -> None:
    assert counts(run(tmp_path)) == (0, 0, 0)
    assert all(rows(tmp_path, table) == [] for table in TABLES)


def test_a_file_of_faults_alone_leaves_bronze_and_silver_empty(tmp_path: Path, run: "Run") -> None:
    put_records(tmp_path / "landing", [b"null"])
    assert counts(run(tmp_path)) == (0, 0, 1)
    assert run(tmp_path).files == 0


def test_a_folder_that_delta_cannot_open_is_named(tmp_path: Path, run: "Run") -> None:
    with pytest.raises(PipelineError, match=r"tables folder .*%20b/tables has a % in its path"):
        run(tmp_path / "a%20b")


def test_a_file_in_the_tables_place_is_named(tmp_path: Path, run: "Run") -> None:
    (tmp_path / "tables").write_text("")
    with pytest.raises(PipelineError, match="tables is a file, not a folder"):
        run(tmp_path)


def test_a_job_that_fails_is_told_in_a_line_and_can_be_done_again(
    tmp_path: Path, run: "Run", monkeypatch: pytest.MonkeyPatch
) -> None:
    put_records(tmp_path / "landing", [record(1)])
    log = make_settings(tables=tmp_path / "tables").spark_log
    with monkeypatch.context() as patch:
        patch.setattr("pipeline.batches.run_batch.write_landing", with_a_lost_file)
        with pytest.raises(JobError, match=r"FileNotFoundError: .*lost.jsonl'$"):
            run(tmp_path)  # in a session that has its log elsewhere
        log.parent.mkdir(parents=True)
        log.touch()
        with pytest.raises(JobError, match=r"lost.jsonl' \(Spark's log: .*spark\.log\)$"):
            run(tmp_path)
    assert counts(run(tmp_path)) == (1, 1, 0)


def with_a_lost_file(spark: "SparkSession", landing: Place, files: list[str], *others: Any) -> None:
    from pipeline.batches import bronze

    bronze.write_landing(spark, landing, [*files, "barn/lost.jsonl"], *others)


def test_java_that_ended_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from py4j.protocol import Py4JNetworkError

    from pipeline.operation.once import run_once

    put_records(tmp_path / "landing", [record(1)])
    for error in (ConnectionRefusedError(111, "refused"), Py4JNetworkError("gone")):

        def ended(error: Exception = error) -> NoReturn:
            raise error

        with pytest.raises(JobError, match=r"Spark's Java process ended \(out of memory\?\)"):
            run_once(make_settings(tmp_path / "landing", tmp_path / "tables"), ended)


def test_java_that_ends_in_talk_with_the_driver_leaves_no_traceback(
    spark: "SparkSession", capfd: pytest.CaptureFixture[str]
) -> None:
    """PySpark's own server of accumulators hears of it first, in a thread of its own."""
    server = spark.sparkContext._accumulatorServer
    client, peer = socket.socketpair()
    with client, peer:
        server.handle_error(peer, ("127.0.0.1", 1))
    assert capfd.readouterr() == ("", "")


def test_settled_folders_are_read_again_when_rows_of_them_are_gone(
    tmp_path: Path, run: "Run"
) -> None:
    put_records(tmp_path / "landing", [record(1), record(2)])
    for path in (tmp_path / "landing").rglob("*"):
        os.utime(path, (1_763_700_000, 1_763_700_000))
    assert run(tmp_path).files == 1
    assert state.settled(tmp_path / "tables") != {}
    assert run(tmp_path).files == 0
    shutil.rmtree(tmp_path / "tables" / "bronze")
    assert run(tmp_path).files == 1
    assert sizes(tmp_path)[:2] == (2, 2)


def test_a_reader_begins_again_where_others_joined_and_removed_its_files(
    tmp_path: Path, run: "Run", spark: "SparkSession"
) -> None:
    from pipeline.operation import maintain
    from pipeline.operation.once import read_only
    from pipeline.tables.spark_files import read_files

    for seq in (1, 2):
        put_records(tmp_path / "landing", [record(seq)], first=seq)
        run(tmp_path)
    settings = make_settings(tmp_path / "landing", tmp_path / "tables")
    silver, tries = settings.tables / "silver", iter((True, False))

    def count() -> int:
        rows = read_files(spark, silver, delta.files(silver), SILVER)
        if next(tries):
            maintain.compact(settings)
            maintain.vacuum(settings, 0)
        return rows.count()

    assert read_only(settings, count) == 2
