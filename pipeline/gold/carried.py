"""Values that hold over midnight: which days they reach, and what a day begins with."""

from collections.abc import Iterable, Iterator, Mapping
from datetime import UTC, date, datetime, timedelta

import pyarrow as pa

from pipeline.gold.kinds import HOLDS_MS, STATE
from pipeline.gold.readings import CARRIED, HEARD_MS, SENSOR
from pipeline.tables import delta
from pipeline.tables.columns import arrow_schema
from pipeline.tables.delta import Where

DAY = timedelta(days=1)
LONGEST = timedelta(milliseconds=max(HOLDS_MS.values()))
HEARD = timedelta(milliseconds=HEARD_MS)
_READ = (*SENSOR, "last_time", "last", "last_text", "unit", "kind", "held_until", "date")

Heard = Mapping[str, datetime]
"""When something of each gateway was last received."""


def heard_from(freshness: pa.Table) -> dict[str, datetime]:
    """Return when something of each gateway was last received, by the rows of `freshness`."""
    return {
        row["gateway_id"]: row["last_received"]
        for row in freshness.select(["gateway_id", "node", "last_received"]).to_pylist()
        if row["node"] is None and row["last_received"] is not None
    }


def as_ms(heard: Heard) -> dict[str, int]:
    """Return these times in ms."""
    return {gateway: int(time.timestamp() * 1000) for gateway, time in heard.items()}


def horizon(heard: Heard, now: datetime) -> date:
    """Return the last day in which a value may hold."""
    newest = max(heard.values(), default=now)
    return min(now, newest + HEARD).date()


def reached(
    touched: Iterable[date], before: Heard, heard: Heard, made: datetime | None, last: date
) -> set[date]:
    """Return the days, up to `last`, whose readings are to be made for touched ones.

    They are these and the days after them; what passed since the tables were `made`, since what
    held then went on; and the silence of gateways that are back.
    """
    days = set(touched)
    days |= {day + DAY for day in days if day < last}
    if made is not None:
        days |= set(_days(made.date(), last))
    for gateway, time in heard.items():
        earlier = before.get(gateway)
        if earlier is not None and time - earlier > HEARD:
            days |= set(_days(earlier.date(), min(time, earlier + LONGEST).date()))
    return days


def runs(days: Iterable[date]) -> list[tuple[date, date]]:
    """Return the first and last of days that follow each other."""
    found: list[tuple[date, date]] = []
    for day in sorted(days):
        if found and day - found[-1][1] == DAY:
            found[-1] = found[-1][0], day
        else:
            found.append((day, day))
    return found


def following(ends: Iterable[date], count: int, last: date) -> set[date]:
    """Return the days after each of these, so many and none after the last."""
    return {day for end in ends for day in _days(end + DAY, min(end + count * DAY, last))}


def carried_from(root: Where, days: Iterable[date]) -> pa.Table:
    """Return CARRIED: the values that hold to the end of these days."""
    table = delta.read_parts(root / "readings_1d", _READ, "date", set(days))
    rows = [
        {name: row[name] for name in SENSOR}
        | {"event_time": row["last_time"], "unit": row["unit"]}
        | {"value": None if row["kind"] == STATE else row["last"]}
        | {"value_text": row["last_text"] if row["kind"] == STATE else None}
        for row in table.to_pylist()
        if row["held_until"] == _end(row["date"])
    ]
    return pa.Table.from_pylist(rows, schema=arrow_schema(CARRIED))


def as_rows(table: pa.Table) -> set[tuple[object, ...]]:
    """Return the rows of a table for comparison."""
    return {tuple(row.values()) for row in table.to_pylist()}


def _end(day: date) -> datetime:
    return datetime(day.year, day.month, day.day, tzinfo=UTC) + DAY


def _days(first: date, last: date) -> Iterator[date]:
    while first <= last:
        yield first
        first += DAY
