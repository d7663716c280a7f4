"""The tables that are made from silver, brought up to it for some dates."""

import re
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from datetime import UTC, date, datetime
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
from pyspark import SparkContext
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.functions import col

from pipeline.errors import PipelineError
from pipeline.gold import carried, expected, freshness, own, silences
from pipeline.gold.assets import ASSETS, aliases, zones
from pipeline.gold.days import GATEWAY_DAY, NODE_DAY, Days, Quarantined
from pipeline.gold.expected import UNEXPECTED, Unexpected
from pipeline.gold.freshness import DATE, FRESHNESS
from pipeline.gold.readings import READINGS
from pipeline.gold.tasks import Job, SilverFile, run
from pipeline.gold.windows import LENGTHS, LOCAL, Windows
from pipeline.place import Place
from pipeline.policy import Aliases
from pipeline.records.declared import NOTHING, Declared
from pipeline.settings import Watch, unwatched
from pipeline.tables import delta, on_disk
from pipeline.tables.columns import SILVER, Columns
from pipeline.tables.spark_files import read_files, write_rows
from pipeline.tables.task_files import discard, of

TABLES: dict[str, Columns] = {
    **dict.fromkeys(LENGTHS, READINGS),
    silences.TABLE: silences.SILENCES,
    "gateway_day": GATEWAY_DAY,
    "node_day": NODE_DAY,
    expected.TABLE: UNEXPECTED,
}

VIEWS: dict[str, Columns] = {
    **TABLES,
    LOCAL: READINGS,
    freshness.TABLE: FRESHNESS,
    "assets": ASSETS,
}
"""What queries of one's own may read beside silver."""

TAKEN = frozenset((*TABLES, LOCAL, freshness.TABLE, "assets", "runs", *on_disk.TABLES))
"""Names that no table of one's own can have."""

ROWS_AT_ONCE = 5_000_000
"""Rows that are made at once, at least one day: what a task may have of one sensor or gateway."""


@dataclass(frozen=True)
class Beside:
    """What gold is made of beside silver."""

    assets: pa.Table | None = None
    """What people call gateways (gold.assets.ASSETS): with it days by local time are made."""
    queries: Mapping[str, str] = field(default_factory=dict)
    """Tables of one's own, by name (gold.queries)."""
    declared: Declared = NOTHING
    """What is expected of readings, and the kinds of quantities."""
    reports: Mapping[str, datetime] = field(default_factory=dict)
    """When a ledger of each gateway came."""


NO_MORE = Beside()


def create(root: Place) -> None:
    """Give each table its columns."""
    for table, columns in TABLES.items():
        delta.create(root / table, columns)
    delta.create(root / freshness.TABLE, FRESHNESS)


def all_dates(root: Place) -> set[str]:
    """Return the dates of silver and the quarantine."""
    return {str(day) for day in _dates(root) | _days(root / "quarantined", DATE)}


def _dates(root: Place) -> set[date]:
    return _days(root / "silver", "event_date")


def _days(table: Place, name: str) -> set[date]:
    found: set[date | None] = set()
    for part in delta.scan(table, [name]):
        found.update(pc.unique(part[name]).to_pylist())
    return {day for day in found if day is not None}


def make(
    open_session: Callable[[], SparkSession],
    root: Place,
    dates: Iterable[str],
    made: datetime | None = None,
    now: datetime | None = None,
    beside: Beside = NO_MORE,
    watch: Watch = unwatched,
    note: Callable[[set[str]], None] = lambda _dates: None,
) -> datetime | None:
    """Make the rows of these dates anew, each table in one step.

    What holds from a date into others is made there, too, up to `now`. `made` is when that was
    last done; returns when it was done now. `watch` gets how many dates have their readings. `note`
    gets the dates to make, before what is in the tables no longer shows that they are: a run that
    is killed leaves them to the next one.
    """
    touched = {date.fromisoformat(day) for day in dates if day}
    if not touched:
        freshness.write(root, freshness.updated(root, (), beside.reports))
        return made
    now = now or datetime.now(UTC)
    spark = open_session()
    files = delta.files(root / "silver")
    silver = _Silver(spark.sparkContext, root, files, beside.declared, aliases(beside.assets))
    later = expected.around(touched, 1, expected.lookback(beside.declared.expectation))
    wanted = sorted(touched | (later.intersection(_dates(root)) if later else later))
    _make_unexpected(silver, wanted)
    before = carried.heard_from(delta.read_all(root / freshness.TABLE))
    _make_days(silver, wanted, _quarantined(root, wanted))
    fresh = freshness.updated(root, wanted, beside.reports)
    heard = carried.heard_from(fresh)
    last = carried.horizon(heard, now)
    days = carried.reached(wanted, before, heard, made, last)
    every = set(wanted)
    reading = _Reading(silver, heard, now, last, beside.assets)
    every |= _make_reached(reading, days, watch, note)
    freshness.write(root, fresh)
    for table, query in beside.queries.items():
        make_own(spark, root, table, query, every)
    watch("gold", len(every), len(every))
    return now


@dataclass(frozen=True)
class _Reading:
    """What readings are made of, and up to which day."""

    silver: "_Silver"
    heard: carried.Heard
    now: datetime
    last: date
    assets: pa.Table | None


def _make_reached(
    of: _Reading, days: set[date], watch: Watch, note: Callable[[set[str]], None]
) -> set[date]:
    """Make the readings of these days, and of those that a value reaches that is another one now.

    Returns all of these days.
    """
    every: set[date] = set()
    further, done = 1, 0
    while days:
        every |= expected.around(days, -1, 1) if of.assets is not None else days
        ends = {end for _, end in carried.runs(days) if end < of.last}
        note({str(day) for day in days.union(end + carried.DAY for end in ends)})
        changed: set[date] = set()
        for portion in of.silver.portions(sorted(days)):
            watch("gold", done, max(len(every), done + len(portion)))
            done += len(portion)
            held = ends.intersection(portion)
            changed |= _make_readings(of.silver, portion, held, of.heard, of.now)
            if of.assets is not None:
                _make_local(of.silver, portion, of.heard, of.now, of.assets)
        days = carried.following(changed, further, of.last)
        further *= 2
    return every


def make_own(
    spark: SparkSession, root: Place, table: str, query: str, days: Collection[date]
) -> None:
    """Make the rows of these days of a table of one's own, of all days if its query is new.

    A table without a column `date` is made as a whole, of all days.
    """
    if table in TAKEN:
        raise PipelineError(f"{table}.sql: {table} is a table of the pipeline itself")
    new = own.is_new(root / table, query)
    if new:
        days = _dates(root)
    _show(spark, root, query, days)
    rows = own.rows_of(spark, table, query)
    whole = DATE not in rows.columns
    if new:
        own.create(root / table, rows)
    elif whole:
        _show(spark, root, query, _dates(root))
        rows = own.rows_of(spark, table, query)
    if whole:
        delta.commit(root / table, write_rows(rows, root, table), delta.files(root / table))
    else:
        wanted = rows.where(col(DATE).isin(sorted(days)))  # others would be there twice
        delta.replace(root / table, write_rows(wanted, root, table), DATE, days)
    own.note(root / table, query)


def _show(spark: SparkSession, root: Place, query: str, days: Collection[date]) -> None:
    """Make views of the tables that a query names, of these days where they have days."""
    named = set(re.findall(r"\w+", query.lower()))
    _silver(spark, root, sorted(days)).createOrReplaceTempView("silver")
    for table, columns in VIEWS.items():
        if table in named:
            files = delta.files(root / table) if delta.exists(root / table) else []
            near = [each for each in files if each["num_records"]]
            among = (DATE, sorted(days)) if DATE in dict(columns) else None
            read_files(spark, root / table, near, columns, among).createOrReplaceTempView(table)


@dataclass
class _Silver:
    """The files of silver, and the way to make tables of them."""

    context: SparkContext
    root: Place
    files: Sequence[dict[str, Any]]
    declared: Declared
    aliases: Aliases

    def of(self, days: Collection[date]) -> list[SilverFile]:
        """Return the files that may have rows of these dates."""
        return [
            SilverFile(self.root / "silver", each["path"], each["num_records"])
            for each in delta.within(self.files, "event_date", days)
        ]

    def portions(self, days: Sequence[date]) -> Iterator[list[date]]:
        """Yield the days in order, of ROWS_AT_ONCE together."""
        counts = self._rows(days)
        portion: list[date] = []
        rows = 0
        for day in days:
            rows += counts[day]
            if portion and rows > ROWS_AT_ONCE:
                yield portion
                portion, rows = [], counts[day]
            portion.append(day)
        yield portion

    def _rows(self, days: Collection[date]) -> Counter[date]:
        """Return how many rows these dates have together with others of their files."""
        counts = Counter[date]()
        for each in delta.within(self.files, "event_date", days):
            if each["min.event_date"] == each["max.event_date"]:
                counts[each["min.event_date"]] += each["num_records"]
                continue
            for part in delta.parts(self.root / "silver", each, ["event_date"]):
                for found in pc.value_counts(part["event_date"]).to_pylist():
                    counts[found["values"]] += found["counts"]
        return counts

    def make(
        self, tables: Iterable[str], dates: Collection[date], job: Job, read: Collection[date]
    ) -> None:
        """Make the rows that tables have of some dates anew, by a job that reads some dates."""
        written = run(self.context, self.of(read), read, job, self.root, self.aliases)
        for table in tables:
            delta.replace(self.root / table, of(written, table), DATE, dates)


def _make_days(silver: _Silver, dates: list[date], quarantined: Quarantined) -> None:
    for portion in silver.portions(dates):
        own = {key: reasons for key, reasons in quarantined.items() if key[1] in portion}
        silver.make(("gateway_day", "node_day"), portion, Days(own), portion)


def _make_readings(
    silver: _Silver, days: list[date], ends: set[date], heard: carried.Heard, now: datetime
) -> set[date]:
    """Make the readings of these days; return those of `ends` whose last values changed."""
    held = {end: carried.as_rows(carried.carried_from(silver.root, [end])) for end in ends}
    begun = _carried(silver.root, days)
    with _lacking(silver, days) as lacking:
        job = _windows(silver, days, days, begun, heard, now, lacking)
        silver.make((*LENGTHS, silences.TABLE), days, job, days)
    now_held = {end: carried.as_rows(carried.carried_from(silver.root, [end])) for end in ends}
    return {end for end in ends if now_held[end] != held[end]}


def _make_local(
    silver: _Silver, days: list[date], heard: carried.Heard, now: datetime, assets: pa.Table
) -> None:
    """Make the local days that share time with these days, of which each needs three of UTC."""
    delta.create(silver.root / LOCAL, READINGS)
    shared = sorted({day + n * carried.DAY for day in days for n in (-1, 0, 1)})
    needed = sorted({day + n * carried.DAY for day in shared for n in (-1, 0, 1)})
    begun = _carried(silver.root, needed)
    with _lacking(silver, needed) as lacking:
        job = _windows(silver, shared, needed, begun, heard, now, lacking)
        silver.make((LOCAL,), shared, replace(job, zones=zones(assets)), needed)


@contextmanager
def _lacking(silver: _Silver, days: Collection[date]) -> Iterator[silences.Lacking]:
    """Give tasks a file of these days' gaps of numbers, of which each would read all."""
    near = silences.write_near(silver.root, min(days), max(days))
    yield silences.Lacking(silver.root, near, silver.aliases)
    discard(silver.root, [near])


def _windows(
    silver: _Silver,
    days: list[date],
    read: list[date],
    begun: pa.Table,
    heard: carried.Heard,
    now: datetime,
    lacking: silences.Lacking,
) -> Windows:
    found = delta.read_parts(silver.root / expected.TABLE, expected.MARKED, DATE, set(read))
    kinds, out = dict(silver.declared.kinds), expected.left_out_of(found)
    heard_ms, made_of = carried.as_ms(heard), silver.declared.expectation
    return Windows(begun, heard_ms, _ms(now), tuple(days), lacking, None, kinds, out, made_of)


def _make_unexpected(silver: _Silver, dates: list[date]) -> None:
    """Make the readings anew that are not as expected; without expectations there are none."""
    expectations = silver.declared.expectation
    known = delta.files(silver.root / expected.TABLE)
    if not expectations and not any(each["num_records"] for each in known):
        return
    before = expected.lookback(expectations)
    for days in silver.portions(dates):
        read = sorted(expected.around(days, -before, 0)) if expectations else []
        silver.make((expected.TABLE,), days, Unexpected(expectations, tuple(days)), read)


def _carried(root: Place, days: list[date]) -> pa.Table:
    """Return the values that hold when some days begin."""
    return carried.carried_from(root, [first - carried.DAY for first, _ in carried.runs(days)])


def _ms(time: datetime) -> int:
    return int(time.timestamp() * 1000)


def _silver(spark: SparkSession, root: Place, dates: list[date]) -> DataFrame:
    near = delta.within(delta.files(root / "silver"), "event_date", dates)
    return read_files(spark, root / "silver", near, SILVER, ("event_date", dates))


def _quarantined(root: Place, dates: list[date]) -> Quarantined:
    """Return what the quarantine holds of these dates by gateway, counted by reason."""
    found: dict[tuple[str, date], Counter[str]] = {}
    columns = ("gateway_id", "date", "reason", "count")
    for part in delta.near(root / "quarantined", columns, DATE, dates):
        for row in part.filter(pc.is_valid(part["gateway_id"])).to_pylist():
            key = row["gateway_id"], row["date"]
            found.setdefault(key, Counter())[row["reason"]] += row["count"]
    return found
