"""The table `freshness`: the newest event of each node, and what was last heard of each gateway."""

from collections.abc import Collection, Mapping
from datetime import date, datetime

import pyarrow as pa
import pyarrow.compute as pc

from pipeline.tables import delta
from pipeline.tables.columns import Columns, arrow_schema
from pipeline.tables.delta import Where

DATE = "date"
TABLE = "freshness"
FRESHNESS: Columns = (
    ("gateway_id", "string"),
    ("node", "string"),
    ("last_time", "timestamp"),
    ("last_received", "timestamp"),
    ("last_report", "timestamp"),
)
"""The newest event of each node, and of each gateway (`node` is null) with its newest receipt, and
when its newest ledger came."""
_SCHEMA = arrow_schema(FRESHNESS)
_KEYS = ["gateway_id", "node"]
_TIMES = ["last_time", "last_received", "last_report"]
_DAYS = {
    "gateway_day": ["gateway_id", "last_time", "last_received"],
    "node_day": ["gateway_id", "node", "last_time"],
}


def updated(root: Where, dates: Collection[date], reports: Mapping[str, datetime]) -> pa.Table:
    """Return the table with days of gateways and nodes that were made anew, and when ledgers came.

    The other days are read only where the newest event of one of these days is an earlier one now,
    as after a correction of its time.
    """
    stored = delta.read_all(root / TABLE)
    named = [{"gateway_id": name, "last_report": time} for name, time in reports.items()]
    parts = [pa.Table.from_pylist(named, schema=_SCHEMA)]
    if dates:
        days, whole = _days(root, dates)
        if not whole and (not stored.num_rows or _fell(stored, days, dates)):
            days, whole = _days(root, None)
        parts.append(days)
        if whole:
            parts.append(_reports_of(stored, days))
            stored = stored.slice(0, 0)
    return _newest([stored, *parts])


def write(root: Where, rows: pa.Table) -> None:
    """Put rows in the place of all that the table has, unless they are the same."""
    if not rows.equals(delta.read_all(root / TABLE)):
        delta.overwrite(root / TABLE, rows)


def _days(root: Where, dates: Collection[date] | None) -> tuple[pa.Table, bool]:
    """Return the newest of these dates, of all if None, and whether there are no others."""
    parts = []
    whole = True
    for table, columns in _DAYS.items():
        if dates is None:
            rows = delta.read(root / table, columns)
        else:
            rows = delta.read_parts(root / table, columns, DATE, dates)
        whole &= rows.num_rows == sum(each["num_records"] for each in delta.files(root / table))
        parts.append(delta.typed(rows, _SCHEMA))
    return _newest(parts), whole


def _newest(parts: list[pa.Table]) -> pa.Table:
    grouped = pa.concat_tables(parts).group_by(_KEYS, use_threads=False)
    newest = grouped.aggregate([(time, "max") for time in _TIMES])
    ordered = newest.sort_by([(key, "ascending") for key in _KEYS])
    return ordered.rename_columns([*_KEYS, *_TIMES]).select(_SCHEMA.names).cast(_SCHEMA)


def _fell(stored: pa.Table, days: pa.Table, dates: Collection[date]) -> bool:
    """Say whether something has an earlier newest event than before in one of these dates."""
    of = pc.is_in(stored["last_time"].cast(pa.date32()), value_set=pa.array(sorted(dates)))
    rows = {(row["gateway_id"], row["node"]): row["last_time"] for row in days.to_pylist()}
    return any(
        (now := rows.get((row["gateway_id"], row["node"]))) is None or now < row["last_time"]
        for row in stored.filter(of).to_pylist()
    )


def _reports_of(stored: pa.Table, days: pa.Table) -> pa.Table:
    """Return what is known of the ledgers of gateways that still have that name."""
    there = pc.is_in(stored["gateway_id"], value_set=pc.unique(days["gateway_id"]))
    rows = stored.filter(pc.and_(there, pc.is_valid(stored["last_report"])))
    return delta.typed(rows.select([*_KEYS, "last_report"]), _SCHEMA)
