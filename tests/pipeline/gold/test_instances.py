"""Several of one quantity at a node are series of their own, beside the same by plain Python."""

import shutil
from collections.abc import Callable, Iterator
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple
from zoneinfo import ZoneInfo

import pytest
from deltalake import DeltaTable, write_deltalake

from pipeline.gold.assets import read_assets
from tests.support.disk.landing_files import put_records, reading, record
from tests.support.pipeline_tables import table_rows

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from pipeline.operation.once import Totals

    Run = Callable[..., Totals]

MINUTE, HOUR, DAY = 60_000, 3_600_000, 86_400_000
BEGIN = 1_763_683_200_000
"""2025-11-21 00:00 UTC."""
ZONES = {"readings_1h": "UTC", "readings_1d": "UTC", "readings_local_1d": "Europe/Berlin"}
MADE = ("silver", "readings_1m", *ZONES)
UNITS = {"temperature": "C", "temperature/a": "°F", "temperature/b": "K", "temperature/c": "C"}
SERIES = (*UNITS, "door", "door/back")


class Read(NamedTuple):
    """A value of a series, and the minute after BEGIN when it was read."""

    series: str
    minute: int
    value: float | str


def of_day(day: int, *series: str) -> list[Read]:
    """Return readings of some series on one day, each at times and with values of its own."""
    found = []
    for place, name in enumerate(series):
        for n in range(3):
            state = ("open", "shut")[(n + place) % 2]
            value = state if name.startswith("door") else 20.0 * place + n + day
            found.append(Read(name, day * 1_440 + 600 + 97 * n + 11 * place, value))
    return found


def records(reads: list[Read], first: int) -> list[object]:
    found: list[object] = []
    for seq, (series, minute, value) in enumerate(reads, first):
        unit = {"unit": UNITS[series]} if series in UNITS else {}
        time = BEGIN + minute * MINUTE
        place = {"topic": f"sensors/n1/{series}", "time": time, "received": time}
        found.append(record(seq, reading(value, **unit), **place))
    return found


def minutes(every: list[Read], end: int) -> Iterator[tuple[int, float | str]]:
    """Yield each minute in which one series has a value, and the value."""
    for index, read in enumerate(every):
        holds = 31 * 1_440 if isinstance(read.value, str) else 1_440
        until = every[index + 1].minute if index + 1 < len(every) else end
        for minute in range(read.minute, min(until, read.minute + holds)):
            yield minute, read.value


def truth(reads: list[Read], table: str, end: int) -> dict[tuple[str, datetime], dict[str, Any]]:
    """Return what the windows of a table must say, by series and start."""

    def start(minute: int) -> datetime:
        time = datetime.fromtimestamp((BEGIN + minute * MINUTE) / 1000, ZoneInfo(ZONES[table]))
        hour = time.hour if table == "readings_1h" else 0
        return time.replace(hour=hour, minute=0).astimezone(UTC)

    rows: dict[tuple[str, datetime], dict[str, Any]] = {}
    for series in SERIES:
        every = sorted((r for r in reads if r.series == series), key=lambda r: r.minute)
        for minute, value in minutes(every, end):
            nothing: dict[str, Any] = {
                "count": 0,
                "held_ms": 0,
                "last": None,
                "weighed": 0.0,
                "states": {},
            }
            row = rows.setdefault((series, start(minute)), nothing)
            row["held_ms"] += MINUTE
            row["last"] = value
            if isinstance(value, str):
                row["states"][value] = row["states"].get(value, 0) + MINUTE
            else:
                row["weighed"] += value * MINUTE
        for read in every:
            rows[series, start(read.minute)]["count"] += 1
    return rows


def series_of(row: dict[str, Any]) -> str:
    behind = "" if row["instance"] is None else f"/{row['instance']}"
    return f"{row['quantity']}{behind}"


def check(data: Path, reads: list[Read], end: int) -> None:
    silver = [(series_of(row), row["time"]) for row in table_rows(data, "silver") if row["node"]]
    assert sorted(silver) == sorted((r.series, BEGIN + r.minute * MINUTE) for r in reads)
    counted = dict.fromkeys(SERIES, 0)
    for row in table_rows(data, "readings_1m"):
        counted[series_of(row)] += row["count"]
    assert counted == {name: sum(r.series == name for r in reads) for name in SERIES}
    for table in ZONES:
        wanted, rows = truth(reads, table, end), table_rows(data, table)
        found = {(series_of(row), row["window_start"]): row for row in rows}
        assert len(found) == len(rows)
        assert found.keys() == wanted.keys(), table
        for key, row in wanted.items():
            got, where = found[key], (table, *key)
            assert (got["count"], got["held_ms"]) == (row["count"], row["held_ms"]), where
            assert dict(got["states"] or ()) == row["states"], where
            assert row["last"] == (got["last_text"] if row["states"] else got["last"]), where
            assert got["unit"] == UNITS.get(key[0]), where
            if not row["states"]:
                mean = row["weighed"] / row["held_ms"]
                assert got["time_weighted_mean"] == pytest.approx(mean), where


def take_column_out(tables: Path) -> None:
    """Leave the tables as the version without instances would have written them."""
    for name in MADE:
        folder = tables / name
        rows = DeltaTable(folder.as_uri()).to_pyarrow_table().drop_columns(["instance"])
        shutil.rmtree(folder)
        write_deltalake(folder.as_uri(), rows)


@pytest.mark.spark
def test_each_instance_is_a_series_also_in_tables_of_before_there_were_any(
    tmp_path: Path, run: "Run", spark: "SparkSession"
) -> None:
    from pipeline.gold import make as gold
    from pipeline.settings import make_settings

    settings = make_settings(tmp_path / "landing", tmp_path / "tables")
    file = tmp_path / "assets.toml"
    file.write_text('[gateway.barn]\ntime_zone = "Europe/Berlin"')
    order = Read("temperature/set", 1_500, 5.0)
    made, reads = None, list[Read]()
    days = (of_day(0, "temperature", "door"), of_day(1, *SERIES), of_day(2, *SERIES[:2]))
    for day, new in enumerate(days):
        reads += new
        sent = [*new, order] if day == 1 else new  # a command is no reading
        put_records(tmp_path / "landing", records(sent, 1 + day * 100), first=1 + day * 100)
        run(tmp_path)
        end = (day + 1) * 1_440 + 10  # what holds is carried over midnight
        now = datetime.fromtimestamp((BEGIN + end * MINUTE) / 1000, UTC)
        gold.create(settings.tables)
        dates = [(date(2025, 11, 21) + timedelta(days=day)).isoformat()]
        made = gold.make(
            lambda: spark, settings.tables, dates, made, now, gold.Beside(read_assets(file))
        )
        check(tmp_path, reads, end)
        if day == 0:
            take_column_out(tmp_path / "tables")
