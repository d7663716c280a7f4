"""Days by local time beside plain Python's, over a change of the clocks and odd zones."""

from collections import defaultdict
from collections.abc import Callable
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING
from zoneinfo import ZoneInfo

import pytest

from pipeline.cli import main
from pipeline.errors import PipelineError
from pipeline.gold.assets import moved, read_assets, update
from pipeline.tables import delta
from tests.support.disk.landing_files import put_records, reading, record
from tests.support.pipeline_tables import table_rows

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from pipeline.operation.once import Totals

    Run = Callable[..., Totals]

HOUR = 3_600_000
BEGIN = 1_761_350_400_000
"""2025-10-25 00:00 UTC; in Berlin the next day has 25 hours."""
ZONES = {"barn": "Europe/Berlin", "mill": "Asia/Kathmandu", "shed": None}
NOW = datetime.fromtimestamp(BEGIN / 1000, UTC) + timedelta(days=3)
VALUES = [(0, 1.0), (21, 5.0), (23, 7.0), (46, 3.0), (50, 4.0)]
"""Hours after BEGIN, and what was read then."""

Days = dict[tuple[str, date], tuple[float, int]]


def truth() -> Days:
    """Return the sum of value times ms, and the ms, by gateway and local day."""
    found: Days = defaultdict(lambda: (0.0, 0))
    ends = [*(hour for hour, _ in VALUES[1:]), 72]
    for gateway, zone in ZONES.items():
        for (hour, value), end in zip(VALUES, ends, strict=True):
            for minute in range(hour * 60, min(end, hour + 24) * 60, 15):
                moment = datetime.fromtimestamp(BEGIN / 1000 + minute * 60, ZoneInfo(zone or "UTC"))
                weighed, held = found[gateway, moment.date()]
                found[gateway, moment.date()] = weighed + value * 900_000, held + 900_000
    return found


@pytest.mark.spark
def test_days_begin_at_local_midnight(tmp_path: Path, run: "Run", spark: "SparkSession") -> None:
    from pipeline.gold import make as gold
    from pipeline.settings import make_settings

    for gateway in ZONES:
        entries: list[object] = [
            record(n, reading(value), gateway_id=gateway, time=BEGIN + hour * HOUR,
                   received=BEGIN + hour * HOUR)
            for n, (hour, value) in enumerate(VALUES, 1)
        ]  # fmt: skip
        put_records(tmp_path / "landing", entries, gateway=gateway)
    run(tmp_path)
    settings = make_settings(tmp_path / "landing", tmp_path / "tables")
    file = tmp_path / "assets.toml"
    file.write_text(
        "\n".join(f'[gateway.{name}]\ntime_zone = "{zone}"' for name, zone in ZONES.items() if zone)
    )
    gold.create(settings.tables)
    dates = ["2025-10-25", "2025-10-26", "2025-10-27"]
    gold.make(lambda: spark, settings.tables, dates, None, NOW, gold.Beside(read_assets(file)))
    wanted = truth()
    rows = {(r["gateway_id"], r["date"]): r for r in table_rows(tmp_path, "readings_local_1d")}
    assert {key: row["held_ms"] for key, row in rows.items()} == {
        key: held for key, (_, held) in wanted.items()
    }
    assert rows["barn", date(2025, 10, 26)]["held_ms"] == 25 * HOUR
    for key, (weighed, held) in wanted.items():
        assert rows[key]["time_weighted_mean"] == pytest.approx(weighed / held), key
        begins = datetime(key[1].year, key[1].month, key[1].day, tzinfo=UTC)
        zone = ZoneInfo(ZONES[key[0]] or "UTC")
        assert rows[key]["window_start"] == begins.replace(tzinfo=zone), key


def test_assets_are_a_table(tmp_path: Path) -> None:
    example = Path(__file__).parents[3] / "examples" / "pipeline" / "assets.toml"
    assets = read_assets(example)
    assert [row["node"] for row in assets.to_pylist()] == [None, "n1"]
    assert moved(tmp_path, assets)
    update(tmp_path, assets)
    assert not moved(tmp_path, assets)
    assert not moved(tmp_path, None)
    update(tmp_path, None)
    other = tmp_path / "other.toml"
    other.write_text(example.read_text().replace("Cow barn", "Barn"))
    assert not moved(tmp_path, read_assets(other))
    update(tmp_path, read_assets(other))
    assert delta.read_all(tmp_path / "assets")["name"].to_pylist() == ["Barn", "Milk tank"]
    other.write_text(example.read_text().replace("Europe/Berlin", "Asia/Tokyo"))
    assert moved(tmp_path, read_assets(other))


WRONG = {
    "gateway.barn = 1": "gateway.barn is 1, but a table is needed",
    "x = 1": "x is not known; known are gateway",
    '[gateway.barn]\nzone = "UTC"': "gateway.barn.zone is not known; known are name, place",
    "[gateway.barn]\nname = 5": "gateway.barn.name is 5, but a text is needed",
    '[gateway.barn]\ntime_zone = "Berlin"': "gateway.barn.time_zone is 'Berlin', which is no zone",
    "[gateway.barn.node.n1]\nplace = 1": "gateway.barn.node.n1.place is 1, but a text",
    "[": "is not TOML",
}


@pytest.mark.parametrize("content", WRONG)
def test_wrong_assets_are_told(tmp_path: Path, content: str) -> None:
    file = tmp_path / "assets.toml"
    file.write_text(content)
    with pytest.raises(PipelineError) as reported:
        read_assets(file)
    assert WRONG[content] in str(reported.value)
    assert str(file) in str(reported.value)


def test_a_file_of_assets_that_is_not_there_ends_the_command(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "landing").mkdir()
    folders = ["--landing", str(tmp_path / "landing"), "--tables", str(tmp_path / "tables")]
    assert main(["once", *folders, "--assets", str(tmp_path / "none.toml")]) == 2
    assert "none.toml: No such file" in capsys.readouterr().err
