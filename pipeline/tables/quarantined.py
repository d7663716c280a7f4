"""Whose the rows of the quarantine are, and of which day."""

from collections import Counter
from collections.abc import Mapping
from datetime import UTC, date, datetime
from typing import NamedTuple

import pyarrow as pa

from pipeline.tables.arrays import integers, numbers, valid
from pipeline.tables.state import Mark

COLUMNS = ["gateway_id", "received", "reason", "landing_file"]
"""What is read of the quarantine for it."""
_DAY_MS = 86_400_000


class Quarantined(NamedTuple):
    """A row of the quarantine; `gateway` and `day` as far as they are known."""

    gateway: str | None
    day: date | None
    reason: str


def quarantined(rows: pa.Table, files: Mapping[str, Mark]) -> Counter[Quarantined]:
    """Count rows of COLUMNS by gateway, day and reason; `files` are the marks of landing files.

    A row that names no gateway is of the one whose folder its file lies in. Its day is that of
    its receipt, else that on which its file was last changed.
    """
    days = integers(numbers(rows["received"]) // _DAY_MS, valid(rows["received"]))
    alike = ["gateway_id", "reason", "landing_file", "day"]
    groups = rows.append_column("day", days).group_by(alike, use_threads=False)
    found: Counter[Quarantined] = Counter()
    for row in groups.aggregate([("received", "min"), ([], "count_all")]).to_pylist():
        name = row["landing_file"] or ""
        ms = row["received_min"]
        if ms is None and name in files:
            ms = files[name].mtime / 1e6
        key = Quarantined(row["gateway_id"] or _folder(name), _day(ms), row["reason"])
        found[key] += row["count_all"]
    return found


def counted(found: Counter[Quarantined], batch: int) -> list[dict[str, object]]:
    """Return how many rows of a batch there are of each gateway, day and reason (QUARANTINED)."""
    names = ("gateway_id", "date", "reason")
    return [
        dict(zip(names, key, strict=True)) | {"count": count, "batch": batch}
        for key, count in found.items()
    ]


def by_reason(found: Counter[Quarantined]) -> Counter[str]:
    """Return how many rows there are of each reason."""
    reasons: Counter[str] = Counter()
    for key, count in found.items():
        reasons[key.reason] += count
    return reasons


def _folder(name: str) -> str | None:
    """Return the gateway's folder, None for a collector's, whose name is a date."""
    folder, slash, _ = name.partition("/")
    collected = len(folder) == 8 and folder.isdecimal()
    return folder if slash and not collected else None


def _day(ms: float | None) -> date | None:
    try:
        return None if ms is None else datetime.fromtimestamp(ms / 1000, UTC).date()
    except (ValueError, OverflowError, OSError):
        return None
