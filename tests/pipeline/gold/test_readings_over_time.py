"""The readings' tables beside the same figures by plain Python, over days, kinds and units."""

import random
from collections import defaultdict
from collections.abc import Callable, Iterator
from datetime import UTC, date, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import pytest

from tests.support.disk.landing_files import put_records, reading, record
from tests.support.pipeline_tables import table_rows

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from pipeline.operation.once import Totals

    Run = Callable[..., Totals]

pytestmark = pytest.mark.spark

MINUTE, HOUR, DAY = 60_000, 3_600_000, 86_400_000
BEGIN = 1_763_683_200_000
"""2025-11-21 00:00 UTC."""
NOW = BEGIN + 4 * DAY + 18 * MINUTE
LENGTHS = {"readings_1m": MINUTE, "readings_1h": HOUR, "readings_1d": DAY}
HOLDS = {"sample": DAY, "total": 31 * DAY, "state": 31 * DAY, "event": 0}
KINDS = {"power": "sample", "temperature": "sample", "energy": "total", "door": "state"}
KINDS |= {"button": "event", "mixed": "sample"}


class Read(NamedTuple):
    """A reading as it was sent."""

    quantity: str
    time: int
    value: float | str
    unit: str | None = None
    quality: str | None = None


def house(chance: random.Random) -> list[Read]:
    """Return four days of a house: dead bands, a meter that is replaced, a door that stays shut."""
    found = [
        Read("power", BEGIN + 10 * HOUR, 40.0, "W"),
        Read("power", BEGIN + 10 * HOUR + 55 * MINUTE, 2_000.0, "W"),
        Read("power", BEGIN + 10 * HOUR + 57 * MINUTE, 0.5, "kW"),
        Read("power", BEGIN + 11 * HOUR + 59 * MINUTE, 40.0, "W"),
        Read("door", BEGIN + 9 * HOUR + 500, "open"),
        Read("door", BEGIN + 22 * HOUR + 250, "shut"),  # for more than a day
        Read("door", BEGIN + 2 * DAY + 7 * HOUR, "open"),
        Read("door", BEGIN + 4 * DAY, "shut"),  # 18 minutes before now
        Read("mixed", BEGIN + 8 * HOUR, 20.0, "°C"),
        Read("mixed", BEGIN + 8 * HOUR + 30 * MINUTE, 50.0, "%"),  # cannot be converted
    ]
    for n in range(60):
        value, unit = ((68.0, "°F"), (20.0, "C"))[n % 2]
        found.append(Read("temperature", BEGIN + 8 * HOUR + n * MINUTE, value, unit))
    found.append(Read("temperature", BEGIN + 8 * HOUR + 90_500, -127.0, "C", "bad"))
    meter = 100.0
    for n in range(80):
        meter = 0.25 if n == 33 else meter + chance.choice((0.25, 0.5, 3.0))
        time = BEGIN + n * HOUR + chance.randrange(HOUR)
        found.append(Read("energy", time, meter, "kWh"))
        found.append(Read("button", time + 7, chance.choice(("single", "double"))))
    return found


def records(reads: list[Read], first: int) -> list[object]:
    found: list[object] = []
    for seq, read in enumerate(reads, first):
        more = {"unit": read.unit, "quality": read.quality}
        body = reading(read.value, **{name: text for name, text in more.items() if text})
        place = {"topic": f"sensors/n1/{read.quantity}"}
        found.append(record(seq, body, time=read.time, received=read.time + 200, **place))
    return found


TO_BASE: dict[str | None, Callable[[float], float]] = {
    None: lambda value: value,
    "W": lambda value: value,
    "kW": lambda value: value * 1000,
    "C": lambda value: value + 273.15,
    "°C": lambda value: value + 273.15,
    "°F": lambda value: (value + 459.67) * 5 / 9,
    "%": lambda value: value,
    "kWh": lambda value: value,
}
OF_BASE: dict[str | None, Callable[[float], float]] = {
    "kW": lambda value: value / 1000,
    "C": lambda value: value - 273.15,
    "°C": lambda value: value - 273.15,
    "°F": lambda value: value * 9 / 5 - 459.67,
}


def into(unit: str | None, value: float, of: str | None) -> float:
    base = TO_BASE[of](value)
    return value if unit == of else OF_BASE[unit](base) if unit in OF_BASE else base


def truth(reads: list[Read], length: int, now: int) -> dict[tuple[str, int, str], dict[str, Any]]:
    """Return the rows of a table by quantity, start of window, and unit where it cannot be one."""
    rows: dict[tuple[str, int, str], dict[str, Any]] = defaultdict(lambda: defaultdict(float))
    for quantity, kind in KINDS.items():
        every = sorted((r for r in reads if r.quantity == quantity), key=lambda r: r.time)
        good = [read for read in every if read.quality != "bad"]
        units = {r.time // DAY: r.unit for r in good}  # the last one of a day
        for read in every:
            if read.quality == "bad":
                key = quantity, read.time // length * length, ""
                rows[key]["bad"] += 1
        for index, read in enumerate(good):
            follows = good[index + 1].time if index + 1 < len(good) else now
            until = min(follows, read.time + HOLDS[kind], now)
            before = good[index - 1] if index else None
            for start, begin, end in shares(read.time, until, length):
                if start > read.time and length == MINUTE and kind != "state":
                    continue
                unit = units.get(start // DAY, read.unit)
                apart = "temperature" if (unit, read.unit) == ("%", "°C") else ""
                unit = read.unit if apart else unit
                row = rows[quantity, start, apart]
                number = None if isinstance(read.value, str) else into(unit, read.value, read.unit)
                share(row, read, number, (begin, end), start <= read.time)
                if kind == "total" and number is not None and start <= read.time and before:
                    last = before.value
                    assert not isinstance(last, str)
                    row["increase"] += number - last if number >= last else number
                    row["resets"] += number < last
    return rows


def shares(time: int, until: int, length: int) -> Iterator[tuple[int, int, int]]:
    start = time // length * length
    yield start, time, min(until, start + length)
    for window in range(start + length, until, length):
        yield window, window, min(until, window + length)


def share(
    row: dict[str, Any], read: Read, number: float | None, span: tuple[int, int], fresh: bool
) -> None:
    lasted = span[1] - span[0]
    row["held_ms"] += lasted
    row["last"] = number
    if fresh:
        row["count"] += 1
        if number is not None:
            row["sum"] += number
            row["min"] = min(row.get("min", number), number)
    if number is not None and KINDS[read.quantity] == "sample":
        row["integral"] += number * lasted / HOUR
    if KINDS[read.quantity] == "state":
        row["states"] = row.get("states", {})
        row["states"][read.value] = row["states"].get(read.value, 0) + lasted


def found_rows(data: Path, table: str) -> dict[tuple[str, int, str], dict[str, Any]]:
    rows = {}
    for row in table_rows(data, table):
        apart = "temperature" if (row["quantity"], row["unit"]) == ("mixed", "K") else ""
        if (row["quantity"], row["unit"]) == ("mixed", "°C"):
            # alone in its window, it is still apart from the unit of the day
            apart = "temperature"
        start = int(row["window_start"].timestamp() * 1000)
        assert row["date"] == datetime.fromtimestamp(start / 1000, UTC).date()
        key = row["quantity"], start, apart
        assert key not in rows
        rows[key] = row
    return rows


def check(data: Path, reads: list[Read], now: int) -> None:
    for table, length in LENGTHS.items():
        wanted = truth(reads, length, now)
        found = {key: row for key, row in found_rows(data, table).items() if key[0] in KINDS}
        assert found.keys() == wanted.keys(), table
        for key, row in wanted.items():
            got, where = found[key], (table, *key)
            kind = KINDS[key[0]]
            assert (got["count"], got["bad"]) == (row["count"], row["bad"]), where
            if row["count"] or kind == "state":
                assert got["kind"] == kind, where
            assert got["held_ms"] == row["held_ms"], where
            assert dict(got["states"] or ()) == row.get("states", {}), where
            if key[2]:
                continue  # told in the dimension's base unit, which is compared below
            if kind != "state" and row.get("last") is not None:
                assert got["last"] == pytest.approx(row["last"]), where
                if row["count"]:
                    assert got["mean"] == pytest.approx(row["sum"] / row["count"]), where
                    assert got["min"] == pytest.approx(row["min"]), where
            if kind == "sample" and row["held_ms"]:
                weighted = row["integral"] * HOUR / row["held_ms"]
                assert got["integral"] == pytest.approx(row["integral"]), where
                assert got["time_weighted_mean"] == pytest.approx(weighted), where
            if kind == "total":
                assert got["increase"] == pytest.approx(row["increase"]), where
                assert got["resets"] == row["resets"], where


def make(data: Path, spark: "SparkSession", now: int, made: int | None, *days: int) -> None:
    from pipeline.gold import make as gold
    from pipeline.settings import make_settings

    settings = make_settings(data / "landing", data / "tables")
    gold.create(settings.tables)
    dates = [date.fromordinal(date(2025, 11, 21).toordinal() + day).isoformat() for day in days]
    gold.make(
        lambda: spark,
        settings.tables,
        dates,
        None if made is None else datetime.fromtimestamp(made / 1000, UTC),
        datetime.fromtimestamp(now / 1000, UTC),
    )


def test_values_hold_until_the_next_one_over_hours_and_days(
    tmp_path: Path, run: "Run", spark: "SparkSession", monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("pipeline.gold.tasks.ROWS_A_TASK", 100)
    monkeypatch.setattr("pipeline.gold.make.ROWS_AT_ONCE", 300)
    reads = house(random.Random(5))
    reads += [Read("odd", BEGIN + n, f"{n:03}" * 100) for n in range(150)]
    early = [read for read in reads if read.time < BEGIN + DAY + 5 * HOUR]
    late = [read for read in reads if read.time >= BEGIN + 3 * DAY]
    between = [read for read in reads if read not in early and read not in late]
    put_records(tmp_path / "landing", records(early + late, 1))
    run(tmp_path)
    make(tmp_path, spark, NOW, None, 0, 1, 3, 4)
    check(tmp_path, early + late, NOW)
    put_records(tmp_path / "landing", records(between, 2_000), first=2_000)  # long on its way
    run(tmp_path)
    make(tmp_path, spark, NOW, NOW, 1, 2)
    check(tmp_path, reads, NOW)
    days = table_rows(tmp_path, "gateway_day")
    assert sum(day["rows"] for day in days) == len(reads)
    assert len({day["date"] for day in days}) == len(days) == 5
    minutes = table_rows(tmp_path, "readings_1m")
    (odd,) = (row for row in minutes if row["quantity"] == "odd" and row["count"])
    states = dict(odd["states"])
    assert (len(states), states["(others)"]) == (101, 50)
    assert {len(name) for name in states} == {8, 200}
    assert sum(states.values()) == MINUTE


def test_days_that_a_value_reaches() -> None:
    from pipeline.gold import carried

    def day(number: int) -> date:
        return date(2025, 11, number)

    def noon(number: int) -> datetime:
        return datetime(2025, 11, number, 12, tzinfo=UTC)

    heard = {"barn": noon(20), "mill": noon(18)}
    assert carried.horizon(heard, noon(30)) == day(21)
    assert carried.horizon(heard, noon(20)) == day(20)
    before = {"barn": noon(20), "mill": noon(16)}
    assert carried.reached({day(3), day(20)}, heard, heard, None, day(20)) == {
        day(3), day(4), day(20),
    }  # fmt: skip
    assert carried.reached({day(20)}, heard, heard, noon(19), day(20)) == {day(19), day(20)}
    back = carried.reached({day(18)}, before, heard, None, day(20))
    assert back == {day(16), day(17), day(18), day(19)}
    assert carried.runs(back | {day(2)}) == [(day(2), day(2)), (day(16), day(19))]
    assert carried.following({day(2), day(19)}, 2, day(20)) == {day(3), day(4), day(20)}
