"""Why a sensor or a gateway was silent: its rules, numbers that are missing, or neither."""

import os
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from pipeline.operation.status import as_text, read_status
from pipeline.records.declarations import Expectation
from pipeline.records.declared import Declared
from pipeline.settings import make_settings
from tests.support.disk.landing_files import EPOCH, TIME, put, put_records, record, text_of
from tests.support.pipeline_tables import table_rows

if TYPE_CHECKING:
    from pipeline.operation.once import Totals

    Run = Callable[..., Totals]

pytestmark = pytest.mark.spark

MINUTE = 60_000
NEXT = "00a1b2c3d5"
BEFORE, BEHIND = range(1, 7), range(30, 36)
"""The numbers of a sensor that sends one a minute before and behind a silence of 24 minutes."""


def messages(
    numbers: range, quantity: str = "temperature", epoch: str = EPOCH, after: int = 0
) -> list[dict[str, object]]:
    return [
        record(
            seq,
            epoch=epoch,
            topic=f"sensors/n1/{quantity}",
            time=TIME + (after + seq) * MINUTE,
            received=TIME + (after + seq) * MINUTE,
        )
        for seq in numbers
    ]


def report(
    landing: Path, *ranges: list[object], number: int = 1, epoch: str = EPOCH, gateway: str = "barn"
) -> Path:
    start = 1 if epoch == EPOCH else 2
    entry = {"epoch": epoch, "start": start, "previous": None, "stream": "main", "ranges": ranges}
    name = f"{epoch}.{number}.jsonl"
    return put(landing / gateway, text_of([entry]), name, gateway="ledger")


def silences(data: Path) -> list[tuple[str, str, float]]:
    """Return each silence: quantity, cause and minutes."""
    return [
        (row["quantity"], row["cause"], (row["ends"] - row["begins"]).total_seconds() / 60)
        for row in table_rows(data, "silences")
    ]


def gaps(data: Path) -> dict[str, int]:
    return {row["quantity"]: row["gaps"] for row in table_rows(data, "readings_1d") if row["count"]}


CASES: dict[str, tuple[list[dict[str, object]], list[list[object]], str]] = {
    "a rule": ([], [[1, 6, "delivered", ""], [7, 29, "filtered", "0@4c1d20aa"]], "rule"),
    "a rule, and another sensor in between": (
        messages(range(10, 29, 2), "humidity"),
        [[n, n, "filtered", "0@4c1d20aa"] for n in (7, 8, 9, *range(11, 30, 2))],
        "rule",
    ),
    "another sensor in between": (messages(range(7, 30), "humidity"), [], "silent"),
    "a lost file": ([], [[1, 35, "delivered", ""]], "missing"),
    "a full outbox beside a rule": (
        [], [[7, 20, "filtered", "0@4c1d20aa"], [21, 29, "evicted", "drop-oldest"]], "missing",
    ),
    "no report yet": ([], [], "missing"),
    "a rule before and behind it alone": (
        messages(range(7, 30), "humidity"), [[36, 90, "filtered", "0@4c1d20aa"]], "silent",
    ),
}  # fmt: skip


@pytest.mark.uncovered
def test_a_silence_has_a_cause(tmp_path: Path, run: "Run") -> None:
    landing = tmp_path / "landing"
    for number, (between, ranges, _) in enumerate(CASES.values()):
        gateway = f"g{number}"
        rows = [*messages(BEFORE), *between, *messages(BEHIND)]
        put_records(landing, [row | {"gateway_id": gateway} for row in rows], gateway=gateway)
        if ranges:
            report(landing, *ranges, gateway=gateway)
    run(tmp_path, gold=True)
    causes = {name: cause for name, (_, _, cause) in CASES.items()}
    check_causes(tmp_path, causes)
    every = Expectation(quantity="temperature", every=1_200.0)
    other = Expectation(quantity="temperature", instance="none", every=60.0)
    run(tmp_path, gold=True, declared=Declared(expectation=(every, other)))
    heartbeat = {"rule": "silent"}
    check_causes(tmp_path, {name: heartbeat.get(cause, cause) for name, cause in causes.items()})
    longer = Declared(expectation=(Expectation(quantity="temperature", every=1_440.0),))
    run(tmp_path, gold=True, declared=longer)
    assert silences(tmp_path) == []


def check_causes(data: Path, causes: dict[str, str]) -> None:
    """Check the silence of each case, whose gateways are numbered, and whether it is a gap."""
    found = {row["gateway_id"]: row for row in table_rows(data, "silences")}
    days = {
        row["gateway_id"]: row["gaps"]
        for row in table_rows(data, "readings_1d")
        if row["count"] and row["quantity"] == "temperature"
    }
    assert {name: found[f"g{n}"]["cause"] for n, name in enumerate(causes)} == causes
    assert days == {f"g{n}": int(cause != "rule") for n, cause in enumerate(causes.values())}
    for row in found.values():
        lasted = (row["ends"] - row["begins"]).total_seconds() / 60
        assert (row["node"], row["quantity"], lasted) == ("n1", "temperature", 24.0)
        assert (row["usual_ms"], str(row["date"])) == (MINUTE, "2025-11-21")


@pytest.mark.uncovered
def test_a_later_report_gives_an_earlier_silence_its_cause(tmp_path: Path, run: "Run") -> None:
    landing = tmp_path / "landing"
    put_records(landing, [*messages(BEFORE), *messages(BEHIND)])
    run(tmp_path, gold=True)
    assert silences(tmp_path) == [("temperature", "missing", 24.0)]
    report(landing, [1, 6, "delivered", ""], [7, 29, "filtered", "0@4c1d20aa"])
    run(tmp_path, gold=True)
    assert silences(tmp_path) == [("temperature", "rule", 24.0)]
    assert gaps(tmp_path) == {"temperature": 0}


@pytest.mark.uncovered
def test_a_silence_over_a_restart_has_the_worse_cause_of_both_starts(
    tmp_path: Path, run: "Run"
) -> None:
    landing = tmp_path / "landing"
    put_records(landing, [*messages(BEFORE)])
    put_records(landing, [*messages(range(10, 16), epoch=NEXT, after=20)], first=10)
    report(landing, [1, 6, "delivered", ""], [7, 9, "filtered", "0@4c1d20aa"])
    report(landing, [1, 9, "filtered", "0@4c1d20aa"], epoch=NEXT)
    run(tmp_path, gold=True)
    assert silences(tmp_path) == [("temperature", "rule", 24.0)]
    put_records(landing, [*messages(range(20, 26), epoch=NEXT, after=40)], first=20)
    report(landing, [16, 16, "lost", "a damaged database"], number=2, epoch=NEXT)
    run(tmp_path, gold=True)
    assert silences(tmp_path) == [("temperature", "rule", 24.0), ("temperature", "missing", 25.0)]


@pytest.mark.uncovered
def test_a_later_report_of_either_start_gives_a_silence_over_a_restart_its_cause(
    tmp_path: Path, run: "Run"
) -> None:
    landing = tmp_path / "landing"
    put_records(landing, [*messages(BEFORE)])
    put_records(landing, [*messages(range(10, 16), epoch=NEXT, after=20)], first=10)
    report(landing, [1, 6, "delivered", ""])
    found = []
    for epoch, number, ranges in (
        (NEXT, 1, []),
        (NEXT, 2, [[1, 9, "filtered", "0@4c1d20aa"]]),
        (EPOCH, 2, [[7, 9, "evicted", "drop-oldest"]]),
    ):
        report(landing, *ranges, number=number, epoch=epoch)
        run(tmp_path, gold=True)
        found += [(cause, gaps(tmp_path)["temperature"]) for _, cause, _ in silences(tmp_path)]
    assert found == [("missing", 1), ("rule", 0), ("missing", 1)]


@pytest.mark.uncovered
def test_a_silence_keeps_its_cause_where_the_clock_became_known_later(
    tmp_path: Path, run: "Run"
) -> None:
    landing = tmp_path / "landing"
    sent = [*messages(BEFORE), *messages(BEHIND)]
    late = {"received": TIME + 3 * 86_400_000}
    put_records(landing, [each | late | {"time": each["time"] - TIME} for each in sent])  # type: ignore[operator]
    report(landing, [1, 6, "delivered", ""], [7, 29, "filtered", "0@4c1d20aa"])
    run(tmp_path, gold=True)
    clock = {"epoch": EPOCH, "offset_ms": TIME, "uncertainty_ms": 70, "from": 0, "to": TIME}
    clock |= {"numbers": {"main": [1, 35]}, "boot": "b", "uptime_ms": 0}
    put(landing / "barn", text_of([clock]), f"{EPOCH}.1.jsonl", gateway="clock")
    run(tmp_path, gold=True)
    put_records(landing, [record(1, gateway_id="mill")], gateway="mill")
    run(tmp_path, gold=True)
    assert silences(tmp_path) == [("temperature", "rule", 24.0)]
    assert gaps(tmp_path) == {"temperature": 0}


@pytest.mark.uncovered
def test_a_gateway_whose_rules_leave_all_out_is_not_silent(tmp_path: Path, run: "Run") -> None:
    landing = tmp_path / "landing"
    settings = make_settings(landing, tmp_path / "tables")
    put_records(landing, [*messages(BEFORE)])
    last, hours = TIME + 6 * MINUTE, 7_200_000
    seconds = (last + hours) / 1000
    now = datetime.fromtimestamp(seconds, UTC)

    def after(ranges: list[list[object]], number: int, age: float) -> tuple[Any, Any, int, str]:
        """Return what is said of the gateway after a report of such an age."""
        file = report(landing, *ranges, number=number)
        os.utime(file, (seconds - age, seconds - age))
        run(tmp_path, gold=True)
        figures = read_status(settings, now)
        barn = figures["by_gateway"]["barn"]
        return barn["silent"], barn["cause"], figures["gateways"]["silent_1h"], as_text(figures)

    filtered: list[object] = [7, 90, "filtered", "0@4c1d20aa"]
    assert after([[1, 6, "delivered", ""]], 1, 60)[:3] == (True, "silent", 1)
    assert after([filtered], 2, 50_000)[:3] == (False, "rule", 0)  # the first is younger
    silent, cause, hour, text = after([[91, 91, "evicted", "drop-oldest"]], 3, 30)
    assert (silent, cause, hour) == (True, "missing", 1)
    assert "barn: silent for 7,200 s, though its ledger comes, usually 60 s at most" in text
    later = read_status(settings, datetime.fromtimestamp(seconds + 7_200, UTC))
    assert later["by_gateway"]["barn"]["cause"] == "silent"
