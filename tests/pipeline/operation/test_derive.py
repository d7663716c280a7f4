"""What is made from silver, through whole runs."""

import json
import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow.parquet as pq
import pytest

from pipeline.cli import main
from pipeline.ledger.report import read_streams, sum_line
from pipeline.tables import delta
from tests.support.disk.landing_files import (
    EPOCH,
    TIME,
    name_for,
    put,
    put_records,
    reading,
    record,
    text_of,
)
from tests.support.pipeline_tables import islands, sizes, table_rows

if TYPE_CHECKING:
    from pipeline.operation.once import Totals

    Run = Callable[..., Totals]

pytestmark = pytest.mark.spark

FRESH = 5_000
MINUTE = 60_000


def entry(*ranges: list[object], last: int | None = None) -> dict[str, Any]:
    previous = None if last is None else {"epoch": EPOCH, "last": {"main": last}}
    return {"epoch": EPOCH, "start": 1, "previous": previous, "stream": "main", "ranges": ranges}


def put_ledger(landing: Path, number: int, *entries: dict[str, Any]) -> None:
    put(landing / "barn", text_of(entries), f"{EPOCH}.{number}.jsonl", gateway="ledger")


def put_clock(landing: Path, *lines: bytes) -> None:
    """Land the clock record of the first two numbers, whose times began at FRESH."""
    clock = {"epoch": EPOCH, "offset_ms": TIME - FRESH, "uncertainty_ms": 70, "from": 0, "to": 9999}
    clock |= {"numbers": {"main": [1, 2]}, "boot": "b", "uptime_ms": 0}
    put(landing / "barn", text_of([clock, *lines]), f"{EPOCH}.1.jsonl", gateway="clock")


def outcomes(data: Path) -> dict[str, int]:
    (row,) = table_rows(data, "streams")
    assert (
        sum(
            row[name]
            for name in row
            if name not in {"gateway", "epoch", "stream", "emitted", "last_time"}
        )
        == row["emitted"]
    )
    return {name: count for name, count in row.items() if type(count) is int and count}


def ledger(data: Path, capsys: pytest.CaptureFixture[str], *options: str) -> tuple[int, str]:
    status = main(["ledger", "--tables", f"{data}/tables", *options])
    return status, capsys.readouterr().out


@pytest.mark.uncovered
def test_a_gap_is_not_reported_then_missing_then_filled(
    tmp_path: Path, run: "Run", capsys: pytest.CaptureFixture[str]
) -> None:
    landing = tmp_path / "landing"
    put_records(landing, [record(1), record(2)])
    put(landing, text_of([record(6)]), name_for(1, 6))
    run(tmp_path)
    assert outcomes(tmp_path) == {"emitted": 6, "delivered": 3, "not_reported": 3}
    (line,) = map(sum_line, read_streams(tmp_path / "tables"))
    assert line == f"barn/{EPOCH}/main: delivered 3 + not reported 3 = emitted 6"
    status, said = ledger(tmp_path, capsys)
    assert status == 0
    assert (
        "not reported: barn/00a1b2c3d4/main numbers 3 to 5 (3) between 2025-11-21 15:46:40" in said
    )
    assert ledger(tmp_path, capsys, "--strict")[0] == 3

    put_ledger(
        landing,
        1,
        entry([1, 2, "delivered", ""], [3, 3, "filtered", "0@a"], [4, 6, "delivered", ""], last=8),
    )
    run(tmp_path)
    assert outcomes(tmp_path) == {
        "emitted": 8, "delivered": 3, "filtered": 1, "missing": 2, "not_reported": 2,
    }  # fmt: skip
    status, said = ledger(tmp_path, capsys)
    assert status == 3
    assert "missing: barn/00a1b2c3d4/main numbers 4 to 5 (2) between" in said
    status, said = ledger(tmp_path, capsys, "--json")
    assert [gap["outcome"] for gap in json.loads(said)["gaps"]] == [
        "filtered",
        "missing",
        "not_reported",
    ]

    put_records(landing, [record(4), record(5)], first=4)
    put_ledger(landing, 2, entry([7, 8, "expired", "maximum_age"]))
    run(tmp_path)
    assert outcomes(tmp_path) == {"emitted": 8, "delivered": 5, "filtered": 1, "expired": 2}
    status, said = ledger(tmp_path, capsys, "--strict")
    assert (status, said.splitlines()[-1]) == (0, "complete: nothing is missing")

    put_records(landing, [record(11)], first=11)
    start = {"start": 2, "epoch": "ffffffffff", "previous": {"epoch": EPOCH, "last": {"main": 9}}}
    put_ledger(landing, 3, entry() | start)
    run(tmp_path)
    assert outcomes(tmp_path) == {
        "emitted": 11, "delivered": 6, "filtered": 1, "expired": 2,
        "not_reported": 1, "unrecorded": 1,
    }  # fmt: skip
    status, said = ledger(tmp_path, capsys)
    assert status == 0
    assert "unrecorded: barn/00a1b2c3d4/main number 10 (1) " in said
    assert "not on disk when the gateway went down" in said
    assert ledger(tmp_path, capsys, "--gateway", "mill") == (2, "")


def test_a_clock_that_becomes_known_corrects_earlier_rows(tmp_path: Path, run: "Run") -> None:
    landing = tmp_path / "landing"
    put_records(landing, [record(n, time=FRESH + n, received=TIME + 90_000_000) for n in (1, 2)])
    put_records(landing, [record(1, gateway_id="mill")], gateway="mill")
    run(tmp_path)
    assert {row["time_source"] for row in table_rows(tmp_path, "silver")} == {"received", "gateway"}
    put_clock(landing, b'{"epoch":1}')
    run(tmp_path)
    put_records(landing, [record(3, time=FRESH + 3)], first=3)
    run(tmp_path)
    rows = table_rows(tmp_path, "silver")
    found = {
        (row["gateway_id"], row["seq"]): (row["event_time"].timestamp() * 1000, row["time_source"])
        for row in rows
    }
    assert found == {
        ("barn", 1): (TIME + 1, "clock"),
        ("barn", 2): (TIME + 2, "clock"),
        ("barn", 3): (TIME + 120, "received"),
        ("mill", 1): (TIME, "gateway"),
    }
    assert {str(row["event_date"]) for row in rows} == {"2025-11-21"}
    assert sizes(tmp_path) == (4, 4, 1)
    times = [(row["gateway_id"], row["first_time"], row["last_time"]) for row in islands(tmp_path)]
    assert times == [("barn", TIME + 1, TIME + 120), ("mill", TIME, TIME)]
    batches = sorted(table_rows(tmp_path, "batches"), key=lambda row: row["batch"])
    epoch = {"gateway_id": "barn", "epoch": EPOCH}
    assert [row["epochs"] for row in batches] == [[], [epoch], []]
    (resent,) = (row for row in rows if row["seq"] == 2)
    put(landing, text_of([record(2, time=FRESH + 2, resent=True)]), name_for(1, 2))
    run(tmp_path)
    assert sizes(tmp_path) == (5, 4, 1)
    assert resent["lateness_ms"] == 90_000_000 - 2


@pytest.mark.uncovered
def test_gold_is_made_anew_for_the_dates_that_a_batch_touched(tmp_path: Path, run: "Run") -> None:
    landing = tmp_path / "landing"
    noon = TIME - TIME % 86_400_000 + 43_200_000
    values = [(0, 1.0), (10, 3.0), (20, 2.0), (70, 5.0), (180, 4.0)]
    entries: list[object] = [
        record(n, reading(value, unit="C"), time=noon + 1000 * second, received=noon + 10**7)
        for n, (second, value) in enumerate(values, 1)
    ]
    doors = [(6, 30, "open"), (7, 90, "closed"), (8, 150, "open")]
    entries += [
        record(
            n,
            reading(state),
            topic="sensors/n1/door",
            time=noon + 1000 * second,
            resent=True,
            received=noon + 10**6,
        )
        for n, second, state in doors
    ]
    entries.append(
        record(9, reading(77), topic="sensors/n1/battery_percent", time=noon, received=noon)
    )
    put_records(landing, entries)
    os.utime(put_records(landing, [b"{"], first=10), (noon / 1000, noon / 1000))
    run(tmp_path, gold=True)
    minutes = {
        (row["quantity"], (row["window_start"].timestamp() * 1000 - noon) / MINUTE): row
        for row in table_rows(tmp_path, "readings_1m")
    }
    first = minutes["temperature", 0]
    assert [first[name] for name in ("min", "max", "mean", "last", "count", "gaps", "unit")] == [
        1.0, 3.0, 2.0, 2.0, 3, 0, "C",
    ]  # fmt: skip
    assert minutes["temperature", 1]["gaps"] == 1
    assert dict(minutes["door", 0]["states"]) == {"open": 30_000}
    assert dict(minutes["door", 1]["states"]) == {"open": 30_000, "closed": 30_000}
    days = [row for row in table_rows(tmp_path, "readings_1d") if row["quantity"] == "door"]
    (day,) = (row for row in days if row["count"])
    assert dict(day["states"]) == {"open": 43_200_000 - 30_000 - 60_000, "closed": 60_000}
    (gateway,) = table_rows(tmp_path, "gateway_day")
    assert (gateway["rows"], gateway["late_rows"], gateway["restarts"]) == (9, 5, 1)
    assert dict(gateway["quarantined"]) == {"not_json": 1}
    assert (gateway["resent_rows"], gateway["longest_silence_ms"]) == (3, 60_000)
    (node,) = table_rows(tmp_path, "node_day")
    assert (node["rows"], node["quantities"], node["battery"]) == (9, 3, 77.0)
    assert len(table_rows(tmp_path, "freshness")) == 2

    later = record(11, reading(9.0), time=noon + 30_000)
    put(landing, text_of([later, record(12, time=noon + 86_400_000)]), name_for(2, 11))
    wrong = record(1, gateway_id="mill", qos=3, received=noon - 86_400_000)
    ahead = record(2, reading(1, time=4_060_000_000_000), gateway_id="mill", received=noon)
    file = put_records(landing, [wrong, ahead, b"{"], gateway="mill")
    os.utime(file, (noon / 1000, noon / 1000))
    run(tmp_path, gold=True)
    days = [row for row in table_rows(tmp_path, "gateway_day") if row["gateway_id"] == "mill"]
    assert sorted((row["rows"], *dict(row["quarantined"] or ())) for row in days) == [
        (0, "field_invalid"),
        (1, "not_json"),
    ]
    fresh = [row for row in table_rows(tmp_path, "freshness") if row["gateway_id"] == "mill"]
    assert {row["last_time"].timestamp() * 1000 for row in fresh} == {noon}
    hours = [
        row
        for row in table_rows(tmp_path, "readings_1h")
        if (row["gateway_id"], row["quantity"]) == ("barn", "temperature") and row["count"]
    ]
    assert sorted((row["count"], row["max"]) for row in hours) == [(1, 21.5), (6, 9.0)]
    for gone in ("readings_1h", "unexpected"):
        shutil.rmtree(tmp_path / "tables" / gone)
    run(tmp_path, gold=True)
    assert all(row in table_rows(tmp_path, "readings_1h") for row in hours)


@pytest.mark.uncovered
def test_a_backlog_that_brings_its_clock_records_is_written_once(
    tmp_path: Path, run: "Run"
) -> None:
    landing = tmp_path / "landing"
    put_records(landing, [record(n, time=FRESH + n) for n in (1, 2)])
    put_clock(landing)
    run(tmp_path)
    assert {row["time_source"] for row in table_rows(tmp_path, "silver")} == {"clock"}
    assert len(list((tmp_path / "tables" / "silver").glob("*.parquet"))) == 1


@pytest.mark.uncovered
def test_gold_reads_what_is_new(
    tmp_path: Path, run: "Run", monkeypatch: pytest.MonkeyPatch
) -> None:
    landing, tables = tmp_path / "landing", tmp_path / "tables"

    def land(day: int, gateway: str = "barn") -> None:
        time = TIME + day * 24 * 60 * MINUTE
        row = record(day, time=time, received=time, gateway_id=gateway)
        file = put_records(landing, [row, b"{"], first=day, gateway=gateway)
        os.utime(file, (time / 1000, time / 1000))
        run(tmp_path, gold=True)

    for day in (1, 2, 3):
        land(day)
    named = ("gateway_day", "node_day", "quarantine")
    old = {str(tables / table) for table in named}
    old |= {str(file) for table in named for file in (tables / table).rglob("[!.]*.parquet")}
    opened: set[str] = set()
    file, table = pq.ParquetFile, pq.read_table

    def note(read: Callable[..., Any]) -> Callable[..., Any]:
        def noted(source: object, *args: object, **options: object) -> Any:
            opened.add(str(source))
            return read(source, *args, **options)

        return noted

    monkeypatch.setattr(pq, "ParquetFile", note(file))
    monkeypatch.setattr(pq, "read_table", note(table))
    monkeypatch.setattr(delta, "read", note(delta.read))
    land(9)
    assert opened & old == set()
    assert opened
    fresh = {
        (row["gateway_id"], row["node"]): row["last_time"].timestamp() * 1000
        for row in table_rows(tmp_path, "freshness")
    }
    assert set(fresh.values()) == {TIME + 9 * 24 * 60 * MINUTE}
    days = [row for row in table_rows(tmp_path, "gateway_day") if row["quarantined"]]
    assert sum(dict(row["quarantined"])["not_json"] for row in days) == 4
