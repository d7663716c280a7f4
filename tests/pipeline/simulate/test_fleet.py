"""The tables beside the truth of a made-up fleet. `make test-fleet` has more gateways."""

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import duckdb
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest

from pipeline.cli import main
from pipeline.gold.assets import read_assets
from pipeline.ledger.completeness import OUTCOMES
from pipeline.records.declarations import read_declared
from pipeline.simulate.gold import LENGTHS
from pipeline.tables import delta
from tests.support import gold_truth
from tests.support.pipeline_kills import Killed, kill_at

if TYPE_CHECKING:
    from pipeline.operation.once import Totals

    Run = Callable[..., Totals]

FEW = 24
GATEWAYS = int(os.environ.get("TIDEGATE_FLEET", FEW))
ROWS = os.environ.get("TIDEGATE_FLEET_ROWS", "48")
"""Messages of a gateway in a day."""
DAYS = 30

HALVES = 3
"""Files that are read when the first line is there alone, and then whole."""

SENSOR_KEY = ("gateway_id", "node", "quantity", "instance", "window_start")
KEYS = {
    **dict.fromkeys(LENGTHS, SENSOR_KEY),
    "gateway_day": ("gateway_id", "day"),
    "node_day": ("gateway_id", "node", "day"),
    "silences": ("gateway_id", "node", "quantity", "instance", "ends"),
    "freshness": ("gateway_id", "node"),
}
"""The gold tables that the truth has, and what names a row of them."""

READINGS, ASSETS = "readings.toml", "assets.toml"
NUMBERS = ("min", "max", "mean", "integral", "increase")

HOURS = 8
"""How long the tables of a hundred million rows may take; those of few, as long as any."""

KILLS = (
    (
        ("pipeline.batches.run_batch.write_silver", 1),
        ("pipeline.ledger.make._made", 1),
        ("pipeline.tables.delta.replace", 5),
    ),
    (
        ("pipeline.tables.silver_numbers.add", 1),
        ("pipeline.tables.delta.replace", 1),
        ("pipeline.gold.make._make_readings", 1),
    ),
)
"""Where the first and the second run of few gateways are killed before they end: in a batch, and in
what follows it."""

KILLED_AFTER = ("silver", "readings_1d")
"""The tables after whose next commit each run of many gateways is killed."""

Figures = tuple[int, int, dict[str, int]]
"""Rows of bronze and of silver, and of the quarantine by reason."""


def test_the_same_seed_gives_the_same_fleet(tmp_path: Path) -> None:
    for name, seed in (("a", 1), ("b", 1), ("c", 2)):
        options = [
            "--out",
            str(tmp_path / name),
            "--gateways",
            "2",
            "--days",
            "9",
            "--seed",
            str(seed),
        ]
        assert main(["simulate", *options]) == 0
    files = [
        {path.name: path.read_bytes() for path in (tmp_path / name).rglob("*.json*")}
        for name in "abc"
    ]
    assert files[0] == files[1] != files[2]
    assert main(["simulate", "--out", str(tmp_path / "a")]) == 2
    assert main(["simulate", "--out", str(tmp_path / "d"), "--days", "0"]) == 2


def by_command(data: Path) -> Figures:
    """Bring the tables up as an operator does, by runs that are killed and then another."""
    folders = ["--landing", str(data / "landing"), "--tables", str(data / "tables")]
    files = ["--readings", str(data / READINGS), "--assets", str(data / ASSETS)]
    command = [sys.executable, "-m", "pipeline.cli", "once", *folders, *files, "--json"]
    for table in KILLED_AFTER:
        log = data / "tables" / table / "_delta_log"
        before = entries(log)
        with subprocess.Popen(command, stdout=subprocess.DEVNULL) as killed:
            while entries(log) <= max(before, 1) and killed.poll() is None:
                time.sleep(0.02)
            assert killed.poll() is None, f"no commit of {table}"
            killed.kill()
    totals = json.loads(subprocess.run(command, stdout=subprocess.PIPE, check=True).stdout)
    return totals["bronze"], totals["silver"], totals["reasons"]


def entries(log: Path) -> int:
    """Return how many entries a table's log has; its schema is the first."""
    return sum(1 for _ in log.glob("*.json"))


@pytest.fixture
def once(request: pytest.FixtureRequest) -> Callable[[Path], Figures]:
    """Return what brings the tables up: of few gateways in the Spark session of all tests.

    A kill is an exception there, since each start of Spark takes ten seconds of the processor.
    """
    if GATEWAYS > FEW:
        return by_command
    run: Run = request.getfixturevalue("run")
    kills = iter(KILLS)

    def in_session(data: Path) -> Figures:
        declared, assets = read_declared(data / READINGS), read_assets(data / ASSETS)
        for place, call in next(kills):
            with pytest.MonkeyPatch.context() as patch:
                kill_at(patch, place, call, after=True)
                with pytest.raises(Killed):
                    run(data, gold=True, declared=declared, assets=assets)
        totals = run(data, gold=True, declared=declared, assets=assets)
        return totals.bronze, totals.silver, dict(totals.reasons)

    return in_session


@pytest.mark.uncovered
@pytest.mark.spark
@pytest.mark.timeout(HOURS * 3600 if GATEWAYS > FEW else 600)
def test_the_tables_say_what_is_true(tmp_path: Path, once: Callable[[Path], Figures]) -> None:
    options = ["--gateways", str(GATEWAYS), "--days", str(DAYS), "--rows", ROWS, "--seed", "7"]
    assert main(["simulate", "--out", str(tmp_path), *options]) == 0
    truth = json.loads((tmp_path / "truth" / "totals.json").read_text())
    (tmp_path / READINGS).write_text(gold_truth.DECLARED)
    (tmp_path / ASSETS).write_text(gold_truth.assets())
    held = tmp_path / "held"
    held.mkdir()
    later = sorted((tmp_path / "landing").glob("*/*.jsonl"))[::3]
    for place, file in enumerate(later):  # a third comes in a second batch
        file.rename(held / str(place))
    halves = later[:HALVES]
    for place, file in enumerate(halves):  # some of it was half copied before
        content = (held / str(place)).read_bytes()
        file.write_bytes(content[: content.index(b"\n") + 1])
    once(tmp_path)
    for place, file in enumerate(later):
        (held / str(place)).rename(file)
    bronze, silver, reasons = once(tmp_path)
    truth["reasons"]["truncated"] += len(halves)
    assert (bronze, silver, reasons) == (
        truth["bronze"] + len(halves),
        truth["silver"],
        truth["reasons"],
    )
    streams = delta.read(tmp_path / "tables" / "streams")
    reported = {name: pc.sum(streams[name]).as_py() for name in OUTCOMES}
    assert {name: count for name, count in reported.items() if count} == truth["outcomes"]
    boards = delta.read(tmp_path / "tables" / "boards").to_pylist()
    assert truth["boards"] == sorted(
        [row["gateway"], *sorted((row["epoch"], row["other_epoch"]))] for row in boards
    )
    assert differing(tmp_path) == []
    beside_plain_python(tmp_path)
    assert {table: rows_differing(tmp_path, table) for table in KEYS} == {key: {} for key in KEYS}


def beside_plain_python(data: Path) -> None:
    """Compare the local days and the unexpected readings of the first gateways."""
    few = pc.field("gateway_id") < f"g{FEW:06d}"
    silver = pq.read_table(data / "truth" / "silver.parquet", filters=few).to_pylist()
    rows = delta.read(data / "tables" / "unexpected", filters=few).to_pylist()
    found = {
        gold_truth.Found(row["gateway_id"], row["epoch"], row["seq"], row["expectation"])
        for row in rows
    }
    assert found == gold_truth.unexpected(gold_truth.by_sensor(silver))
    assert {each.expectation for each in found} == {"range", "rate", "stuck"}
    truth = gold_truth.local_days(silver)
    rows = delta.read(data / "tables" / "readings_local_1d", filters=few).to_pylist()
    days = {(tuple(row[name] for name in SENSOR_KEY[:-1]), row["date"]): row for row in rows}
    assert days.keys() == truth.keys()
    for key, of in truth.items():
        row = days[key]
        assert (row["count"], row["bad"], row["held_ms"]) == (of["count"], of["bad"], of["held_ms"])
        assert dict(row["states"] or ()) == of["states"], key
        assert [row[name] or 0.0 for name in NUMBERS] == pytest.approx(
            [of[name] or 0.0 for name in NUMBERS], abs=1e-9
        ), key


def differing(data: Path) -> list[tuple[str]]:
    """Return gateways whose keys or event times in silver are not those of the truth.

    Sums of hashes are compared, so that a hundred million rows need little memory.
    """
    silver = [
        str(data / "tables" / "silver" / file["path"])
        for file in delta.files(data / "tables" / "silver")
    ]
    sums = "gateway_id, count(*), sum(hash(epoch, seq, ms)) FROM rows GROUP BY gateway_id"
    columns = "gateway_id, epoch, seq"
    found = f"SELECT {columns}, epoch_ms(event_time) AS ms FROM read_parquet($silver)"
    true = f"SELECT {columns}, ms FROM read_parquet($truth)"
    query = f"""
        WITH found AS (WITH rows AS ({found}) SELECT {sums}),
             truth AS (WITH rows AS ({true}) SELECT {sums})
        SELECT gateway_id FROM (
            (FROM found EXCEPT FROM truth) UNION ALL (FROM truth EXCEPT FROM found)
        )"""
    files = {"silver": silver, "truth": str(data / "truth" / "silver.parquet")}
    return duckdb.execute(query, files).fetchall()


def rows_differing(data: Path, table: str) -> dict[str, object]:
    """Return the first row of a gold table that differs from the truth, by column."""
    files = [str(data / "tables" / table / f["path"]) for f in delta.files(data / "tables" / table)]
    with duckdb.connect() as database:
        truth = database.read_parquet(str(data / "truth" / f"{table}.parquet"))
        found = database.read_parquet(files, union_by_name=True)
        kinds = dict(zip(found.columns, map(str, found.types), strict=True))
        shown = [_shown(name, kinds.get(name, "")) for name in truth.columns]
        some = "WHERE rows > 0" if table == "gateway_day" else ""
        database.register("found", found)
        database.register("truth", truth)
        same = " AND ".join(f"t.{key} IS NOT DISTINCT FROM f.{key}" for key in KEYS[table])
        checks = {name: _differs(name, kinds.get(name, "")) for name in truth.columns}
        checks |= {"": "t.gateway_id IS NULL OR f.gateway_id IS NULL"}
        database.execute(f"CREATE VIEW f AS SELECT {', '.join(shown)} FROM found {some}")
        pairs = f"FROM truth t FULL JOIN f ON {same}"
        counts = ", ".join(f"count_if({check})" for check in checks.values())
        (counted,) = database.sql(f"SELECT {counts} {pairs}").fetchall()
        return {
            name: database.sql(f"SELECT t, f {pairs} WHERE {checks[name]} LIMIT 1").fetchall()
            for name, count in zip(checks, counted, strict=True)
            if count
        }


def _shown(name: str, kind: str) -> str:
    """Return a gold table's column as the truth has it."""
    if name == "day":
        return "epoch_ms(date::TIMESTAMP) // 86400000 AS day"
    if kind.startswith("MAP"):
        entry = "{'state': e.key, 'ms': e.value}"
        return f"list_transform(map_entries({name}), lambda e: {entry}) AS {name}"
    return f"epoch_ms({name}) AS {name}" if kind.startswith("TIMESTAMP") else name


def _differs(name: str, kind: str) -> str:
    if kind == "DOUBLE":  # sums in another order
        near = f"abs(t.{name} - f.{name}) <= 1e-9 * greatest(1, abs(t.{name}))"
        return f"NOT coalesce({near}, t.{name} IS NULL AND f.{name} IS NULL)"
    return f"t.{name} IS DISTINCT FROM f.{name}"
