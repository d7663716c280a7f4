"""The tables beside the truth of a made-up fleet. `make test-fleet` has more gateways."""

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import duckdb
import pyarrow.compute as pc
import pytest

from pipeline.cli import main
from pipeline.ledger.completeness import OUTCOMES
from pipeline.tables import delta

if TYPE_CHECKING:
    from pipeline.operation.once import Totals

    Run = Callable[..., Totals]

FEW = 12
GATEWAYS = int(os.environ.get("TIDEGATE_FLEET", FEW))
ROWS = os.environ.get("TIDEGATE_FLEET_ROWS", "48")
"""Messages of a gateway in a day."""
DAYS = 30 if GATEWAYS > FEW else 10

HOURS = 8
"""How long the tables of a hundred million rows may take; those of few, as long as any."""

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
    """Bring the tables up as an operator does, with the settings that a command has by default."""
    folders = ["--landing", str(data / "landing"), "--tables", str(data / "tables")]
    command = [sys.executable, "-m", "pipeline.cli", "once", *folders, "--json"]
    totals = json.loads(subprocess.run(command, stdout=subprocess.PIPE, check=True).stdout)
    return totals["bronze"], totals["silver"], totals["reasons"]


@pytest.fixture
def once(request: pytest.FixtureRequest) -> Callable[[Path], Figures]:
    """Return what brings the tables up: of few gateways in the Spark session of all tests."""
    if GATEWAYS > FEW:
        return by_command
    run: Run = request.getfixturevalue("run")

    def in_session(data: Path) -> Figures:
        totals = run(data, gold=True)
        return totals.bronze, totals.silver, dict(totals.reasons)

    return in_session


@pytest.mark.uncovered
@pytest.mark.spark
@pytest.mark.timeout(HOURS * 3600 if GATEWAYS > FEW else 600)
def test_the_tables_say_what_is_true(tmp_path: Path, once: Callable[[Path], Figures]) -> None:
    options = ["--gateways", str(GATEWAYS), "--days", str(DAYS), "--rows", ROWS, "--seed", "7"]
    assert main(["simulate", "--out", str(tmp_path), *options]) == 0
    truth = json.loads((tmp_path / "truth" / "totals.json").read_text())
    held = tmp_path / "held"
    held.mkdir()
    later = sorted((tmp_path / "landing").glob("*/*.jsonl"))[::3]
    for place, file in enumerate(later):  # a third comes in a second batch
        file.rename(held / str(place))
    once(tmp_path)
    for place, file in enumerate(later):
        (held / str(place)).rename(file)
    bronze, silver, reasons = once(tmp_path)
    assert (bronze, silver, reasons) == (truth["bronze"], truth["silver"], truth["reasons"])
    streams = delta.read(tmp_path / "tables" / "streams")
    reported = {name: pc.sum(streams[name]).as_py() for name in OUTCOMES}
    assert {name: count for name, count in reported.items() if count} == truth["outcomes"]
    assert differing(tmp_path) == []
    assert days_differing(tmp_path) == []


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


def days_differing(data: Path) -> list[tuple[object, ...]]:
    """Return the days of gateways that are not those of the truth: rows, silence and restarts."""
    gateway_day = [
        str(data / "tables" / "gateway_day" / file["path"])
        for file in delta.files(data / "tables" / "gateway_day")
    ]
    query = """
        WITH timed AS (
            SELECT *, epoch_ms(ms)::DATE AS date FROM read_parquet($truth) WHERE ms IS NOT NULL
        ), spaced AS (
            SELECT *, ms - lag(ms) OVER (PARTITION BY gateway_id, date ORDER BY ms) AS silence
            FROM timed
        ), truth AS (
            SELECT gateway_id, date, count(*), max(silence),
                count(DISTINCT epoch) FILTER (WHERE seq = 1)
            FROM spaced GROUP BY ALL
        ), found AS (
            SELECT gateway_id, date, rows, longest_silence_ms, restarts
            FROM read_parquet($found, hive_partitioning = true) WHERE rows > 0
        )
        (FROM found EXCEPT FROM truth) UNION ALL (FROM truth EXCEPT FROM found)"""
    files = {"found": gateway_day, "truth": str(data / "truth" / "silver.parquet")}
    return duckdb.execute(query, files).fetchall()
