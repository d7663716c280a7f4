"""What gateways and nodes did in a day, beside the same by plain Python."""

import math
import random
from collections import defaultdict
from collections.abc import Callable, Iterable
from datetime import UTC, date, datetime, timedelta
from itertools import pairwise
from typing import Any

import pyarrow as pa
import pytest

from pipeline.gold.days import LATE_MS, NEEDED, Quarantined, gateway_day, node_day
from pipeline.tables.columns import SILVER, arrow_schema

BEGIN = datetime(2025, 11, 21, tzinfo=UTC)
DAYS = [date(2025, 11, 21), date(2025, 11, 22)]
Row = dict[str, Any]
QUARANTINED: Quarantined = {
    ("barn", DAYS[0]): {"not_json": 2, "seq": 1},
    ("loft", DAYS[1]): {"not_json": 4},
}


def silver(count: int) -> list[Row]:
    chance = random.Random(11)

    def row(seq: int) -> Row:
        time = BEGIN + timedelta(milliseconds=chance.randrange(2 * 86_400_000))
        received = int(time.timestamp() * 1000) + chance.randrange(-9_000, 2 * LATE_MS)
        known = chance.random() < 0.9
        return {
            "gateway_id": chance.choice(("barn", "mill")), "epoch": chance.choice(("0a", "0b")),
            "node": chance.choice(("n1", "n2", None)), "event_date": time.date(),
            "quantity": chance.choice(("t", "battery_percent", "Battery")), "seq": seq,
            "event_time": time, "received": received if known else None,
            "value": chance.choice((None, chance.random() * 100)),
            "lateness_ms": received - int(time.timestamp() * 1000) if known else None,
            "resent": chance.choice((True, False, None)), "bytes": chance.choice((None, 10, 31)),
            "decode_error": chance.choice((None, "no number")),
        }  # fmt: skip

    return [row(seq % 40 + 1) for seq in range(count)]


def table(rows: list[Row]) -> pa.Table:
    schema = arrow_schema(SILVER)
    return pa.Table.from_pylist(rows, pa.schema([schema.field(name) for name in NEEDED]))


def percentile(values: Iterable[int | None]) -> int | None:
    ordered = sorted(value for value in values if value is not None)
    return ordered[math.ceil(0.99 * len(ordered)) - 1] if ordered else None


def common(rows: list[Row]) -> Row:
    """Return what both tables say of the rows of a group."""
    times = sorted(row["event_time"] for row in rows)
    silences = [(b - a) // timedelta(milliseconds=1) for a, b in pairwise(times)]
    seen = [
        row["event_time"]
        if row["received"] is None
        else min(row["event_time"], datetime.fromtimestamp(row["received"] / 1000, UTC))
        for row in rows
    ]
    return {
        "rows": len(rows),
        "lateness_p99_ms": percentile(row["lateness_ms"] for row in rows),
        "resent_share": pytest.approx(sum(row["resent"] is True for row in rows) / len(rows)),
        "longest_silence_ms": max(silences, default=None),
        "last_time": max(seen),
    }


def of_gateway(rows: list[Row]) -> Row:
    lateness = [row["lateness_ms"] for row in rows if row["lateness_ms"] is not None]
    received = [row["received"] for row in rows if row["received"] is not None]
    last = max(received, default=None)
    return common(rows) | {
        "bytes": sum(row["bytes"] or 0 for row in rows),
        "late_rows": sum(each > LATE_MS for each in lateness),
        "lateness_max_ms": max(lateness, default=None),
        "resent_rows": sum(row["resent"] is True for row in rows),
        "restarts": len({row["epoch"] for row in rows if row["seq"] == 1}),
        "last_received": None if last is None else datetime.fromtimestamp(last / 1000, UTC),
    }


def of_node(rows: list[Row]) -> Row:
    ordered = sorted(rows, key=lambda row: (row["event_time"], row["seq"]))
    battery = [
        row["value"]
        for row in ordered
        if row["quantity"].lower().startswith("battery") and row["value"] is not None
    ]
    return common(rows) | {
        "quantities": len({row["quantity"] for row in rows}),
        "errors": sum(row["decode_error"] is not None for row in rows),
        "battery": battery[-1] if battery else None,
        "battery_min": min(battery, default=None),
    }


def grouped(
    rows: list[Row], keys: tuple[str, ...], figures: Callable[[list[Row]], Row]
) -> dict[tuple[Any, ...], Row]:
    groups: dict[tuple[Any, ...], list[Row]] = defaultdict(list)
    for row in rows:
        groups[tuple(row[key] for key in (*keys, "event_date"))].append(row)
    return {key: figures(members) for key, members in groups.items()}


@pytest.mark.parametrize("count", [1, 3, 700])
def test_days_are_what_plain_python_says(count: int) -> None:
    rows = silver(count)
    wanted = grouped(rows, ("gateway_id",), of_gateway)
    for row in wanted.values():
        row["quarantined"] = None
    nothing = dict.fromkeys(("rows", "bytes", "late_rows", "resent_rows", "restarts"), 0)
    for (gateway, day), reasons in QUARANTINED.items():
        wanted.setdefault((gateway, day), dict(nothing))["quarantined"] = list(reasons.items())
    found = {
        (row.pop("gateway_id"), row.pop("date")): row
        for batch in gateway_day(table(rows), QUARANTINED)
        for row in batch.to_pylist()
    }
    assert found.keys() == wanted.keys()
    for key, row in found.items():
        assert row == dict.fromkeys(row) | wanted[key], key
    nodes = [row for row in rows if row["node"] is not None]
    of_nodes = {
        (row.pop("gateway_id"), row.pop("node"), row.pop("date")): row
        for batch in node_day(table(rows))
        for row in batch.to_pylist()
    }
    assert of_nodes == grouped(nodes, ("gateway_id", "node"), of_node)


def test_days_of_nothing_but_the_quarantine() -> None:
    none = table([])
    assert not list(node_day(none))
    (batch,) = gateway_day(none, QUARANTINED)
    assert set(batch["date"].to_pylist()) == set(DAYS)
    assert not list(gateway_day(none, {}))
