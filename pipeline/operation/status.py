"""How the tables are: sizes, lag, rates, late rows; as words, JSON or Prometheus text."""

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from statistics import median
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from pipeline.errors import writing
from pipeline.gold.expected import TABLE
from pipeline.gold.silences import BY_RULE, CAUSES
from pipeline.landing.listing import kind, list_landing
from pipeline.ledger.completeness import OUTCOMES
from pipeline.ledger.report import check_version
from pipeline.printable import printable
from pipeline.settings import Settings
from pipeline.tables import delta, state
from pipeline.tables.delta import Where

SILENT, RULE, MISSING = CAUSES
HOUR_SECONDS = 3_600
LACKING = ("missing", "lost", "not_reported")
"""The outcomes of numbers that are listed by gateway."""
HABIT_DAYS = 14
SILENT_TIMES = 3
"""So many times its usual longest silence of a day makes a gateway a silent one ..."""
SILENT_SECONDS = 300.0
"""... if it is longer than this."""
GATEWAYS_SHOWN = 20
"""Gateways that are listed one by one, those in trouble first; of further ones only the number."""

GATEWAY_METRICS = (
    ("gateway_lag_seconds", "Age of a gateway's newest event.", "lag_seconds"),
    ("gateway_silent", "1 if a gateway is silent longer than usual, and by no rule.", "silent"),
    ("gateway_missing", "Numbers that a gateway calls delivered and nobody has.", "missing"),
    ("gateway_lost", "Numbers that a gateway lost.", "lost"),
    ("gateway_unexpected", "Readings of a gateway that are not as expected.", "unexpected"),
    ("gateway_not_reported", "Numbers that a gateway said nothing of yet.", "not_reported"),
)

Figures = dict[str, Any]
_NO_NAMES = pa.schema([("gateway_id", pa.string()), ("expectation", pa.string())]).empty_table()


def read_status(settings: Settings, now: datetime | None = None) -> Figures:
    """Return all figures, by name; nothing is changed and no Spark is started.

    Raises PipelineError for tables of an earlier version.
    """
    check_version(settings.tables)
    now = now or datetime.now(UTC)
    committed = state.load(settings.tables)
    listing = list_landing(settings.landing)
    waiting = committed.new(listing.files)
    root = settings.tables
    runs = _runs(root)
    unexpected = _unexpected(root)
    gateways = _by_gateway(root, now, _sums(unexpected, "gateway_id"))
    lags = [each["lag_seconds"] for each in gateways.values() if each["lag_seconds"] is not None]
    return {
        "rows": {table: committed.rows[table] for table in ("bronze", "silver", "quarantine")},
        "reasons": dict(sorted(committed.reasons.items())),
        "batches": committed.count,
        "landing_files_waiting": sum(kind(name) == "records" for name in waiting),
        "landing_bytes_waiting": sum(mark.size for mark in waiting.values()),
        "oldest_waiting_seconds": _age(min((m.mtime for m in waiting.values()), default=None), now),
        "landing_files_left": len(listing.left),
        "left": listing.left,
        "unexpected": _sums(unexpected, "expectation"),
        "numbers": _numbers(root),
        "late_rows": _late(root),
        "gateways": _gateways(gateways),
        "by_gateway": gateways,
        "lag_seconds": min(lags, default=None),
        "tables": {table: _size(root / table) for table in delta.tables_in(root)},
        "rates": _rates(runs, now),
        "last_run": runs[-1] | {"started": runs[-1]["started"].isoformat()} if runs else None,
    }


def as_text(figures: Figures) -> str:
    """Return the figures as lines for a person."""
    lines = [f"{name:<24}{count:>16,} rows" for name, count in figures["rows"].items()]
    lines += [f"  {reason:<22}{count:>16,}" for reason, count in figures["reasons"].items()]
    found = figures["unexpected"]
    if found:
        lines.append(f"{'not as expected':<24}{sum(found.values()):>16,} readings")
    lines += [f"  {expectation:<22}{count:>16,}" for expectation, count in found.items()]
    oldest = figures["oldest_waiting_seconds"]
    since = "" if oldest is None else f", the oldest for {oldest:,.0f} s"
    lines.append(f"{'waiting in landing':<24}{figures['landing_files_waiting']:>16,} files{since}")
    lines += [f"{f'numbers {name}':<24}{n:>16,}" for name, n in figures["numbers"].items() if n]
    lines.append(f"{'late rows':<24}{figures['late_rows']:>16,}")
    silent = figures["gateways"]
    lines.append(f"{'gateways':<24}{silent['known']:>16,}, {silent['silent_1h']:,} silent for 1 h")
    if figures["lag_seconds"] is not None:
        lines.append(f"{'newest event':<24}{figures['lag_seconds']:>16,.0f} s ago")
    lines += _gateway_lines(figures["by_gateway"])
    for table, size in figures["tables"].items():
        lines.append(f"{'table ' + table:<24}{size['bytes']:>16,} bytes in {size['files']:,} files")
    rates = figures["rates"]
    for hours, name in ((1, "last hour"), (24, "last day")):
        lines.append(f"{'read in the ' + name:<24}{rates[f'rows_{hours}h']:>16,} rows")
    run = figures["last_run"]
    if run:
        rate = rates["last_run_rows_per_second"]
        lines.append(f"{'last run':<24}{run['new_bronze']:>16,} rows, {rate:,.0f} rows/s")
        if run["error"]:
            lines.append(f"{'it failed':<24}{run['error']}")
    return "\n".join(lines)


def _gateway_lines(gateways: dict[str, Figures]) -> Iterator[str]:
    """Yield a line for each gateway that lacks something or is silent."""
    troubled = {
        name: each
        for name, each in gateways.items()
        if each["silent"] or each["missing"] or each["lost"]
    }
    for name, each in list(troubled.items())[:GATEWAYS_SHOWN]:
        parts = [f"{each[outcome]:,} {outcome}" for outcome in ("missing", "lost") if each[outcome]]
        if each["silent"]:
            usual = each["usual_silence_seconds"]
            why = ", though its ledger comes" if each["cause"] == MISSING else ""
            silent = f"silent for {each['lag_seconds']:,.0f} s{why}"
            parts.append(f"{silent}, usually {usual:,.0f} s at most")
        yield f"  {printable(name)}: {', '.join(parts)}"
    if len(troubled) > GATEWAYS_SHOWN:
        yield f"  and {len(troubled) - GATEWAYS_SHOWN:,} more gateways"


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
    found = figures["unexpected"]
    metric("unexpected_readings", "Readings that are not as expected.", found, "expectation")
    metric("numbers", "Numbers that gateways gave, by outcome.", figures["numbers"], "outcome")
    sizes = {table: size["bytes"] for table, size in figures["tables"].items()}
    metric("table_bytes", "Bytes by table.", sizes, "table")
    files = {table: size["files"] for table, size in figures["tables"].items()}
    metric("table_files", "Files by table.", files, "table")
    metric("late_rows", "Rows received an hour after their event.", {"": figures["late_rows"]})
    waiting = {"": figures["landing_files_waiting"]}
    metric("landing_files_waiting", "Landing files that no run read yet.", waiting)
    metric("gateways", "Gateways that ever sent a message.", {"": figures["gateways"]["known"]})
    silent = {"": figures["gateways"]["silent_1h"]}
    metric("gateways_silent", "Gateways without an event for an hour.", silent)
    if figures["lag_seconds"] is not None:
        metric("lag_seconds", "Age of the newest event.", {"": figures["lag_seconds"]})
    for name, text, figure in GATEWAY_METRICS:
        each = figures["by_gateway"].items()
        known = {gateway: of[figure] for gateway, of in each if of[figure] is not None}
        metric(name, text, {gateway: float(value) for gateway, value in known.items()}, "gateway")
    oldest = {"": figures["oldest_waiting_seconds"] or 0}
    metric("oldest_waiting_seconds", "Age of the oldest landing file that waits.", oldest)
    rates = figures["rates"]
    metric("rows_last_hour", "Rows that runs of the last hour read.", {"": rates["rows_1h"]})
    run = figures["last_run"]
    if run:
        started = datetime.fromisoformat(run["started"]).timestamp()
        metric("last_run_timestamp_seconds", "Start of the last run.", {"": started})
        metric("last_run_seconds", "Length of the last run.", {"": run["seconds"]})
        metric("last_run_failed", "1 if the last run failed.", {"": int(bool(run["error"]))})
        rate = {"": rates["last_run_rows_per_second"]}
        metric("last_run_rows_per_second", "Rows a second of the last run.", rate)
    return "\n".join(lines) + "\n"


def _unexpected(root: Where) -> pa.Table:
    """Return how many readings are not as expected, by gateway and expectation."""
    names = ["gateway_id", "expectation"]
    table = root / TABLE
    rows = delta.read(table, names) if delta.exists(table) else _NO_NAMES
    return rows.group_by(names).aggregate([([], "count_all")])


def _sums(counts: pa.Table, name: str) -> dict[str, int]:
    found = counts.group_by(name).aggregate([("count_all", "sum")]).sort_by(name)
    return dict(zip(found[name].to_pylist(), found["count_all_sum"].to_pylist(), strict=True))


def _numbers(root: Where) -> dict[str, int]:
    if not delta.exists(root / "streams"):
        return dict.fromkeys(OUTCOMES, 0)
    rows = delta.read(root / "streams")
    # In Python's integers: a ledger may call 2**63 numbers lost, and Arrow's sums wrap around.
    return {outcome: sum(filter(None, rows[outcome].to_pylist())) for outcome in OUTCOMES}


def _late(root: Where) -> int:
    if not delta.exists(root / "gateway_day"):
        return 0
    return pc.sum(delta.read(root / "gateway_day", ["late_rows"])["late_rows"]).as_py() or 0


def _fresh(root: Where) -> dict[str, Figures]:
    """Return the newest event of each gateway, and when its newest ledger came, if one did."""
    if not delta.exists(root / "freshness"):
        return {}
    rows = delta.read_all(root / "freshness").to_pylist()
    return {
        row["gateway_id"]: {"event": row["last_time"], "report": row.get("last_report")}
        for row in rows
        if row["node"] is None and row["last_time"] is not None
    }


def _gateways(gateways: dict[str, Figures]) -> Figures:
    ages = {name: each["lag_seconds"] for name, each in gateways.items()}
    silent = {
        name: age
        for name, age in ages.items()
        if age is not None and age > HOUR_SECONDS and gateways[name]["cause"] != RULE
    }
    return {"known": len(ages), "silent_1h": len(silent), "silent_seconds": silent}


def _by_gateway(root: Where, now: datetime, unexpected: dict[str, int]) -> dict[str, Figures]:
    """Return of each gateway its lag, whether it is silent by its own habit, and what it lacks.

    Its habit is the median of its days' longest silences, of the last HABIT_DAYS that it has.
    """
    fresh, habits, behind = _fresh(root), _habits(root), _behind(root)
    numbers = _numbers_by_gateway(root)
    found = {}
    for gateway in sorted(fresh.keys() | numbers.keys()):
        known = fresh.get(gateway, {"event": None, "report": None})
        lag, reported = (_seconds(now, known[name]) for name in ("event", "report"))
        usual = habits.get(gateway)
        bound = None if usual is None else max(SILENT_TIMES * usual, SILENT_SECONDS)
        cause = None
        if lag is not None and lag > min(bound or HOUR_SECONDS, HOUR_SECONDS):
            # A ledger that came since shows that the gateway works, and what became of its numbers.
            alive = reported is not None and reported <= max(bound or 0, HOUR_SECONDS)
            cause = behind.get(gateway, SILENT) if alive else SILENT
        found[gateway] = {
            "lag_seconds": lag,
            "usual_silence_seconds": usual,
            "silent": None if lag is None or bound is None else lag > bound and cause != RULE,
            "cause": cause,
            **numbers.get(gateway, dict.fromkeys(LACKING, 0)),
            "unexpected": unexpected.get(gateway, 0),
        }
    return found


def _seconds(now: datetime, time: datetime | None) -> float | None:
    return None if time is None else round((now - time).total_seconds(), 3)


def _behind(root: Where) -> dict[str, str]:
    """Return why nothing came behind the newest row of gateways whose ledger has later numbers."""
    if not delta.exists(root / "gaps"):
        return {}
    gaps = delta.read(root / "gaps", ["gateway", "outcome", "after", "before"])
    gaps = gaps.filter(pc.is_null(gaps["before"]))
    newest = gaps.group_by("gateway").aggregate([("after", "max")])
    last = dict(zip(newest["gateway"].to_pylist(), newest["after_max"].to_pylist(), strict=True))
    found: dict[str, str] = {}
    for row in gaps.to_pylist():
        gateway = row["gateway"]
        if row["after"] in {None, last[gateway]}:  # of no start that has ended
            by_rule = row["outcome"] == BY_RULE and found.get(gateway) != MISSING
            found[gateway] = RULE if by_rule else MISSING
    return found


def _habits(root: Where) -> dict[str, float]:
    if not delta.exists(root / "gateway_day"):
        return {}
    rows = delta.read(root / "gateway_day", ["gateway_id", "date", "longest_silence_ms"])
    days: dict[str, list[float]] = {}
    for row in rows.sort_by("date").to_pylist():
        if row["longest_silence_ms"] is not None:
            days.setdefault(row["gateway_id"], []).append(row["longest_silence_ms"] / 1000)
    return {gateway: median(each[-HABIT_DAYS:]) for gateway, each in days.items()}


def _numbers_by_gateway(root: Where) -> dict[str, dict[str, int]]:
    if not delta.exists(root / "streams"):
        return {}
    found: dict[str, dict[str, int]] = {}
    for row in delta.read(root / "streams", ["gateway", *LACKING]).to_pylist():
        counts = found.setdefault(row["gateway"], dict.fromkeys(LACKING, 0))
        for outcome in LACKING:
            counts[outcome] += row[outcome] or 0
    return found


def _size(table: Where) -> dict[str, int]:
    sizes = [each["size_bytes"] for each in delta.files(table)]
    return {"files": len(sizes), "bytes": sum(sizes)}


def _runs(root: Where) -> list[Figures]:
    """Return the rows of the table `runs`, the oldest first."""
    if not delta.exists(root / "runs"):
        return []
    table = delta.read(root / "runs")
    if "error" not in table.column_names:  # of an earlier version
        table = table.append_column("error", pa.nulls(table.num_rows, pa.string()))
    rows: list[Figures] = table.sort_by("started").to_pylist()
    return rows


def _rates(runs: list[Figures], now: datetime) -> Figures:
    """Return the rows that the runs of the last hour and day read, and the last run's speed."""

    def rows(hours: int) -> int:
        return sum(
            run["new_bronze"] for run in runs if now - run["started"] < timedelta(hours=hours)
        )

    last = runs[-1] if runs else {"new_bronze": 0, "seconds": 1.0}
    return {
        "rows_1h": rows(1),
        "rows_24h": rows(24),
        "last_run_rows_per_second": round(last["new_bronze"] / max(last["seconds"], 0.001), 1),
    }


def _age(mtime: int | None, now: datetime) -> float | None:
    return None if mtime is None else round(now.timestamp() - mtime / 1e9, 3)


def write_metrics(settings: Settings, file: Path) -> None:
    """Put Prometheus text in place whole, since a scraper may read at any time."""
    temporary = file.with_name(f".{file.name}.tmp")
    text = as_prometheus(read_status(settings))
    with writing(file):
        temporary.write_text(text, encoding="utf-8")
    temporary.replace(file)
