"""The newest event of nodes and gateways, brought up by some days at a time."""

from datetime import UTC, date, datetime, timedelta
from pathlib import Path

import pyarrow as pa
import pytest

from pipeline.gold import freshness, make
from pipeline.place import place_of
from pipeline.tables import delta
from pipeline.tables.columns import arrow_schema

FIRST = datetime(2025, 11, 21, tzinfo=UTC)
Days = dict[tuple[str, str, int], int]
"""The hour of the newest event by gateway, node and day."""


def put(root: Path, days: Days) -> None:
    for table, keys in (("gateway_day", ("gateway_id",)), ("node_day", ("gateway_id", "node"))):
        rows = []
        for (gateway, node, day), hour in days.items():
            time = FIRST + timedelta(day, hours=hour)
            row = {"gateway_id": gateway, "node": node, "date": time.date(), "last_time": time}
            received = {"last_received": time} if table == "gateway_day" else {}
            rows.append({key: row[key] for key in (*keys, "date", "last_time")} | received)
        delta.overwrite(root / table, pa.Table.from_pylist(rows, arrow_schema(make.TABLES[table])))


def newest(root: Path) -> dict[tuple[str, str | None], tuple[int, int] | None]:
    """Return day and hour by gateway and node."""
    found = {}
    for row in delta.read_all(root / freshness.TABLE).to_pylist():
        passed = row["last_time"] and row["last_time"] - FIRST
        found[row["gateway_id"], row["node"]] = passed and (passed.days, passed.seconds // 3600)
    return found


BEFORE: Days = {("barn", "n1", 0): 3, ("barn", "n2", 2): 5, ("mill", "n1", 1): 7}
CASES: dict[str, tuple[Days, list[int], bool]] = {
    "a new day": (BEFORE | {("barn", "n1", 3): 1}, [3], False),
    "a late row of an old day": (BEFORE | {("barn", "n1", 1): 1}, [1], False),
    "nothing that counts": (BEFORE, [1], False),
    "an earlier time since a correction": (BEFORE | {("barn", "n2", 2): 4}, [2], True),
    "a node that has another name now": (
        {("barn", "n1", 0): 3, ("barn", "n9", 2): 5, ("mill", "n1", 1): 7}, [2], True,
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", CASES)
def test_some_days_bring_it_up(tmp_path: Path, case: str, monkeypatch: pytest.MonkeyPatch) -> None:
    after, touched, whole = CASES[case]
    make.create(place_of(tmp_path))
    put(tmp_path, BEFORE)
    report = FIRST + timedelta(5)
    freshness.write(tmp_path, freshness.updated(tmp_path, {date(2025, 11, 21)}, {"barn": report}))
    put(tmp_path, after)
    read: list[Path] = []
    every = delta.read

    def noted(root: Path, columns: list[str]) -> pa.Table:
        read.append(root)
        return every(root, columns)

    monkeypatch.setattr(delta, "read", noted)
    days = {FIRST.date() + timedelta(day) for day in touched}
    freshness.write(tmp_path, freshness.updated(tmp_path, days, {}))
    assert bool(read) == whole
    wanted: dict[tuple[str, str | None], tuple[int, int]] = {}
    for (gateway, node, day), hour in after.items():
        for key in ((gateway, node), (gateway, None)):
            wanted[key] = max(wanted.get(key, (day, hour)), (day, hour))
    assert newest(tmp_path) == wanted
    reports = delta.read_all(tmp_path / freshness.TABLE).to_pylist()
    assert [row["gateway_id"] for row in reports if row["last_report"] == report] == ["barn"]
    version = len(list((tmp_path / freshness.TABLE / "_delta_log").iterdir()))
    freshness.write(tmp_path, freshness.updated(tmp_path, (), {"mill": report}))
    assert newest(tmp_path) == wanted
    freshness.write(tmp_path, freshness.updated(tmp_path, (), {"mill": report - timedelta(1)}))
    assert len(list((tmp_path / freshness.TABLE / "_delta_log").iterdir())) == version + 1
