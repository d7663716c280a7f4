"""Readings that are not as expected, beside a reading at a time in plain Python."""

import random
from collections.abc import Callable, Iterator
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest

from pipeline.gold.expected import lookback, unexpected
from pipeline.operation.status import as_text, read_status
from pipeline.records.declarations import Expectation
from pipeline.records.declared import Declared
from pipeline.settings import make_settings
from pipeline.tables.columns import SILVER, arrow_schema
from tests.support.disk.landing_files import TIME, put_records, reading, record
from tests.support.pipeline_tables import table_rows

if TYPE_CHECKING:
    from pipeline.operation.once import Totals

    Run = Callable[..., Totals]

BEGIN = datetime(2025, 11, 21, tzinfo=UTC)
HOUR = 3_600
EXPECTED = Expectation(quantity="t", unit="°C", minimum=0.0, maximum=60.0, rate=0.5, stuck=5 * HOUR)
FAHRENHEIT = 5 / 9
Verdict = tuple[int, str]


def rows_of(chance: random.Random, count: int) -> list[dict[str, Any]]:
    """Return readings of two sensors, some at one value for long, some in other units."""
    rows = []
    for seq in range(1, count + 1):
        value = chance.choice([20.0, 20.0, 20.0, 20.5, 21.0, 50.0, 61.0, -1.0, 68.0])
        rows.append({
            "gateway_id": "barn", "node": chance.choice(("n1", "n2")), "quantity": "t",
            "epoch": "0a", "stream": "main", "seq": seq, "part": chance.choice((None, 0)),
            "event_time": BEGIN + timedelta(minutes=chance.choice((1, 30, 90)) * seq),
            "value": value, "unit": chance.choice(("°C",) * 9 + ("°F", "hPa", None)),
            "quality": chance.choice((None,) * 9 + ("bad_crc",)),
        })  # fmt: skip
    return rows


def verdicts(rows: list[dict[str, Any]], expected: Expectation) -> Iterator[Verdict]:
    """Yield what a person would say who reads one after the other."""
    for node in ("n1", "n2"):
        before: tuple[datetime, float] | None = None
        since: datetime | None = None
        mine = (row for row in rows if row["node"] == node and row["quality"] is None)
        for row in sorted(mine, key=lambda row: (row["event_time"], row["seq"])):
            if row["unit"] not in ("°C", "°F"):
                yield row["seq"], "unit"
                continue
            value = row["value"]
            if row["unit"] == "°F":
                value = (value - 32) * FAHRENHEIT
            if not 0 <= value <= 60:
                yield row["seq"], "range"
                continue
            time = row["event_time"]
            if before is not None and (time - before[0]).total_seconds() <= 24 * HOUR:
                minutes = (time - before[0]).total_seconds() / 60
                if abs(value - before[1]) > 0.5 * minutes:
                    yield row["seq"], "rate"
                if abs(value - before[1]) > 1e-9:
                    since = time
            else:
                since = time
            assert since is not None
            if (time - since).total_seconds() >= 5 * HOUR:
                yield row["seq"], "stuck"
            before = time, value


def test_each_reading_is_judged_as_by_a_person() -> None:
    for seed in range(40):
        rows = rows_of(random.Random(seed), 60)
        table = pa.Table.from_pylist(rows, schema=arrow_schema(SILVER))
        found = [
            (row["seq"], row["expectation"])
            for part in unexpected(table, [EXPECTED])
            for row in part.to_pylist()
        ]
        assert sorted(found) == sorted(verdicts(rows, EXPECTED)), seed
    assert {name for _, name in verdicts(rows, EXPECTED)} == {"unit", "range", "rate", "stuck"}


def test_an_expectation_is_of_what_it_names() -> None:
    rows = rows_of(random.Random(1), 50)
    table = pa.Table.from_pylist(rows, schema=arrow_schema(SILVER))
    for names in ({"node": "n1"}, {"gateway": "shed"}, {"instance": "a"}):
        expected = Expectation(quantity="t", maximum=60.0, **names)  # type: ignore[arg-type]
        found = {r["seq"] for part in unexpected(table, [expected]) for r in part.to_pylist()}
        assert found == {
            row["seq"]
            for row in rows
            if names == {"node": row["node"]} and row["value"] > 60 and row["quality"] is None
        }


def test_how_far_back_readings_matter() -> None:
    assert lookback([]) == 0
    assert lookback([Expectation(quantity="t", maximum=1.0)]) == 0
    assert lookback([Expectation(quantity="t", rate=1.0)]) == 1
    assert lookback([EXPECTED, Expectation(quantity="u", stuck=25.0 * HOUR)]) == 3


DAY_MS = 86_400_000
VALUES = [20.0, 85.0, 21.0]
"""Half an hour apart, around midnight: TIME is 15:46:40."""


def declared(action: str) -> Declared:
    kinds = (("t", "total"),) if action == "mark" else ()
    each = Expectation(quantity="t", maximum=60.0, stuck=20 * HOUR, action=action)
    return Declared(expectation=(each,), kinds=kinds)


@pytest.mark.spark
def test_what_is_quarantined_is_in_no_figure(tmp_path: Path, run: "Run") -> None:
    begin = TIME + 7 * HOUR * 1000 + 1_800_000
    entries: list[object] = [
        record(n, reading(value, unit="°C"), topic="sensors/n1/t",
               time=begin + n * 1_800_000, received=begin + n * 1_800_000)
        for n, value in enumerate(VALUES, 1)
    ]  # fmt: skip
    put_records(tmp_path / "landing", entries)
    run(tmp_path, gold=True, declared=declared("mark"))
    told = table_rows(tmp_path, "unexpected")
    assert [(row["seq"], row["expectation"], row["action"]) for row in told] == [
        (2, "range", "mark")
    ]
    assert told[0]["detail"] == "85 is above 60"
    days = {row["date"]: row for row in table_rows(tmp_path, "readings_1d") if row["count"]}
    assert {day.day: (row["max"], row["bad"], row["kind"]) for day, row in days.items()} == {
        21: (20.0, 0, "total"),
        22: (85.0, 0, "total"),
    }
    assert days[date(2025, 11, 22)]["increase"] == 65.0 + 21.0  # a reset counts from 0
    run(tmp_path, gold=True, declared=declared("quarantine"))  # without new files
    days = {row["date"]: row for row in table_rows(tmp_path, "readings_1d") if row["count"]}
    assert (days[date(2025, 11, 22)]["max"], days[date(2025, 11, 22)]["bad"]) == (21.0, 1)
    stuck = begin + DAY_MS
    late: list[object] = [
        record(n, reading(21.0, unit="°C"), topic="sensors/n1/t", time=time, received=time)
        for n, time in ((4, stuck - 1_000), (5, stuck + 3_600_000))
    ]
    put_records(tmp_path / "landing", late, first=4)
    run(tmp_path, gold=True, declared=declared("quarantine"))
    told = table_rows(tmp_path, "unexpected")
    assert sorted((row["seq"], row["expectation"], row["action"]) for row in told) == [
        *((2, "range", "quarantine"), (4, "stuck", "quarantine"), (5, "stuck", "quarantine"))
    ]
    days = {row["date"]: row for row in table_rows(tmp_path, "readings_1d")}
    assert (days[date(2025, 11, 22)]["max"], days[date(2025, 11, 22)]["bad"]) == (21.0, 2)
    assert days[date(2025, 11, 22)]["kind"] == "sample"
    figures = read_status(make_settings(tmp_path / "landing", tmp_path / "tables"))
    assert figures["unexpected"] == {"range": 1, "stuck": 2}
    assert figures["by_gateway"]["barn"]["unexpected"] == 3
    assert "  stuck                                2" in as_text(figures)
    again = table_rows(tmp_path, "unexpected")
    put_records(tmp_path / "landing", late, first=4)
    run(tmp_path, gold=True, declared=declared("quarantine"))
    assert table_rows(tmp_path, "unexpected") == again
