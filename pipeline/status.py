"""How the tables are: sizes, lag, rates, late rows; as words, JSON or Prometheus text."""

from collections import Counter
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pyarrow.compute as pc

from pipeline import delta, state
from pipeline.landing import kind, list_landing
from pipeline.ledger.completeness import OUTCOMES
from pipeline.settings import Settings
from pipeline.tables import IN_BATCHES, IN_DELTA

HOUR_MS = 3_600_000

Figures = dict[str, Any]


def read_status(settings: Settings, now: datetime | None = None) -> Figures:
    """Return all figures, by name; nothing is changed and no Spark is started."""
    now = now or datetime.now(UTC)
    committed = state.load(settings.checkpoints) if settings.checkpoints.is_dir() else state.State()
    listing = list_landing(settings.landing)
    waiting = committed.new(listing.files)
    root = settings.tables
    return {
        "rows": {table: committed.rows(table) for table in ("bronze", "silver", "quarantine")},
        "reasons": dict(sorted(committed.reasons.items())),
        "batches": committed.batches.num_rows,
        "landing_files_waiting": sum(kind(name) == "records" for name in waiting),
        "landing_bytes_waiting": sum(mark.size for mark in waiting.values()),
        "landing_files_left": len(listing.left),
        "numbers": _numbers(root),
        "late_rows": _late(root),
        "gateways": _gateways(root, now),
        "lag_seconds": _lag(root, now),
        "tables": {table: _size(root / table) for table in sorted(_tables(root))},
        "last_run": _last_run(root),
    }


def as_text(figures: Figures) -> str:
    """Return the figures as lines for a person."""
    lines = [f"{name:<24}{count:>16,} rows" for name, count in figures["rows"].items()]
    lines += [f"  {reason:<22}{count:>16,}" for reason, count in figures["reasons"].items()]
    lines.append(f"{'waiting in landing':<24}{figures['landing_files_waiting']:>16,} files")
    lines += [f"{f'numbers {name}':<24}{n:>16,}" for name, n in figures["numbers"].items() if n]
    lines.append(f"{'late rows':<24}{figures['late_rows']:>16,}")
    silent = figures["gateways"]
    lines.append(f"{'gateways':<24}{silent['known']:>16,}, {silent['silent_1h']:,} silent for 1 h")
    if figures["lag_seconds"] is not None:
        lines.append(f"{'newest event':<24}{figures['lag_seconds']:>16,.0f} s ago")
    for table, size in figures["tables"].items():
        lines.append(f"{'table ' + table:<24}{size['bytes']:>16,} bytes in {size['files']:,} files")
    run = figures["last_run"]
    if run:
        rate = run["new_bronze"] / run["seconds"] if run["seconds"] else 0
        lines.append(f"{'last run':<24}{run['new_bronze']:>16,} rows, {rate:,.0f} rows/s")
    return "\n".join(lines)


def as_prometheus(figures: Figures) -> str:
    """Return the figures in Prometheus' text format."""
    lines: list[str] = []

    def metric(name: str, text: str, values: dict[str, float], label: str = "") -> None:
        lines.append(f"# HELP tidegate_pipeline_{name} {text}")
        lines.append(f"# TYPE tidegate_pipeline_{name} gauge")
        for value, number in values.items():
            labels = f'{{{label}="{value}"}}' if label else ""
            lines.append(f"tidegate_pipeline_{name}{labels} {number}")

    metric("rows", "Rows by table.", figures["rows"], "table")
    metric("quarantined_rows", "Rows of the quarantine by reason.", figures["reasons"], "reason")
    metric("numbers", "Numbers that gateways gave, by outcome.", figures["numbers"], "outcome")
    sizes = {table: size["bytes"] for table, size in figures["tables"].items()}
    metric("table_bytes", "Bytes by table.", sizes, "table")
    files = {table: size["files"] for table, size in figures["tables"].items()}
    metric("table_files", "Files by table.", files, "table")
    metric("late_rows", "Rows received an hour after their event.", {"": figures["late_rows"]})
    waiting = {"": figures["landing_files_waiting"]}
    metric("landing_files_waiting", "Landing files that no run read yet.", waiting)
    metric("gateways", "Gateways that were ever heard of.", {"": figures["gateways"]["known"]})
    silent = {"": figures["gateways"]["silent_1h"]}
    metric("gateways_silent", "Gateways without an event for an hour.", silent)
    if figures["lag_seconds"] is not None:
        metric("lag_seconds", "Age of the newest event.", {"": figures["lag_seconds"]})
    if figures["last_run"]:
        metric("last_run_seconds", "Length of the last run.", {"": figures["last_run"]["seconds"]})
    return "\n".join(lines) + "\n"


def _numbers(root: Path) -> dict[str, int]:
    if not delta.exists(root / "streams"):
        return dict.fromkeys(OUTCOMES, 0)
    rows = delta.read(root / "streams")
    return {outcome: pc.sum(rows[outcome]).as_py() or 0 for outcome in OUTCOMES}


def _late(root: Path) -> int:
    if not delta.exists(root / "gateway_day"):
        return 0
    return pc.sum(delta.read(root / "gateway_day", ["late_rows"])["late_rows"]).as_py() or 0


def _newest(root: Path) -> dict[str, datetime]:
    if not delta.exists(root / "freshness"):
        return {}
    rows = delta.read(root / "freshness").to_pylist()
    return {
        row["gateway_id"]: row["last_time"]
        for row in rows
        if row["node"] is None and row["last_time"] is not None
    }


def _gateways(root: Path, now: datetime) -> dict[str, int]:
    newest = _newest(root)
    silent = Counter((now - time).total_seconds() * 1000 > HOUR_MS for time in newest.values())
    return {"known": len(newest), "silent_1h": silent[True]}


def _lag(root: Path, now: datetime) -> float | None:
    newest = max(_newest(root).values(), default=None)
    return None if newest is None else round((now - newest).total_seconds(), 3)


def _tables(root: Path) -> list[str]:
    named = {*IN_BATCHES, *IN_DELTA}
    if root.is_dir():
        named |= {folder.name for folder in root.iterdir() if delta.exists(folder)}
    return [table for table in named if (root / table).is_dir()]


def _size(table: Path) -> dict[str, int]:
    if delta.exists(table):
        sizes = [each["size_bytes"] for each in delta.files(table)]
    else:
        sizes = [file.stat().st_size for file in table.rglob("[!._]*.parquet")]
    return {"files": len(sizes), "bytes": sum(sizes)}


def _last_run(root: Path) -> Figures | None:
    if not delta.exists(root / "runs"):
        return None
    rows: list[Figures] = delta.read(root / "runs").sort_by("started").to_pylist()
    if not rows:
        return None
    return rows[-1] | {"started": rows[-1]["started"].isoformat()}


def write_metrics(settings: Settings, file: Path) -> None:
    """Put Prometheus text in place whole, since a scraper may read at any time."""
    temporary = file.with_name(f".{file.name}.tmp")
    temporary.write_text(as_prometheus(read_status(settings)), encoding="utf-8")
    temporary.replace(file)
