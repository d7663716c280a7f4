"""The tables that are made from silver, brought up to it for some dates."""

import secrets
import shutil
from collections import Counter
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from datetime import UTC, date, datetime
from pathlib import Path
from urllib.parse import unquote

import duckdb
import pyarrow as pa

from pipeline.gold import carried
from pipeline.gold.assets import ZONES, zones
from pipeline.gold.days import GATEWAY_DAY, GATEWAY_ROWS, NODE_DAY, NODE_ROWS
from pipeline.gold.readings import BY_WINDOW, HEARD, READINGS, WINDOWS, pieces, spaced
from pipeline.gold.units import MACROS
from pipeline.tables import delta, on_disk, staging
from pipeline.tables.columns import QUARANTINE, SILVER, Columns, arrow_schema, names
from pipeline.tables.duckdb_files import escaped, quoted, select
from pipeline.tables.quarantined import COLUMNS, Quarantined, marks_of, quarantined

DATE = "date"
LOCAL = "readings_local_1d"
"""Days by the time zones of gateways, where a file of assets names them."""
FRESHNESS: Columns = (
    ("gateway_id", "string"),
    ("node", "string"),
    ("last_time", "timestamp"),
    ("last_received", "timestamp"),
)
"""The newest event of each node, and of each gateway (`node` is null) with its newest receipt."""

TABLES: dict[str, Columns] = {
    **dict.fromkeys(WINDOWS, READINGS),
    "gateway_day": GATEWAY_DAY,
    "node_day": NODE_DAY,
}

_FRESHNESS = """
SELECT gateway_id, node, max(last_time) AS last_time, NULL::TIMESTAMPTZ AS last_received
FROM node_day GROUP BY ALL
UNION ALL
SELECT gateway_id, NULL, max(last_time), max(last_received) FROM gateway_day GROUP BY ALL
ORDER BY ALL
"""
_QUARANTINED = ("gateway_id", "quarantined", "date")
MEMORY = "4GB"
"""What DuckDB takes at most; more is on the disk meanwhile."""
ORDER = ("gateway_id", "node", "quantity", "instance", "window_start")
"""That of the rows in a file."""


def create(root: Path) -> None:
    """Give each table its columns."""
    for table, columns in TABLES.items():
        delta.create(root / table, columns, DATE)
    delta.create(root / "freshness", FRESHNESS)


def all_dates(root: Path, files: pa.Table) -> set[str]:
    """Return the dates of silver and the quarantine; `files` is `State.files`."""
    found = (each.get("partition.event_date") for each in delta.files(root / "silver"))
    days = {*found, *(each.day for each in _quarantine(root, files))}
    return {str(day) for day in days if day is not None}


def make(
    root: Path,
    dates: Iterable[str],
    files: pa.Table,
    made: datetime | None = None,
    now: datetime | None = None,
    assets: pa.Table | None = None,
) -> datetime | None:
    """Make the rows of these dates anew, each table in one step; `files` is `State.files`.

    What holds from a date into others is made there, too, up to `now`. `made` is when that was
    last done; returns when it was done now. With `assets` days by local time are made, too.
    """
    wanted = sorted({date.fromisoformat(day) for day in dates if day})
    if not wanted:
        return made
    now = now or datetime.now(UTC)
    staged = staging.stage(root)
    with connect(root, staged) as maker:
        maker.make_days(wanted, files)
        maker.make_readings(set(wanted), made, now, assets)
    shutil.rmtree(staged)
    return now


@contextmanager
def connect(root: Path, staged: Path) -> "Iterator[Maker]":
    """Open DuckDB, which spills to the staging folder what its memory does not hold."""
    spill = str(staged / "spill")
    with duckdb.connect(config={"memory_limit": MEMORY, "temp_directory": spill}) as database:
        database.execute("SET TimeZone = 'UTC'")
        database.execute(MACROS)
        yield Maker(root, staged, database)


class Maker:
    """Makes gold of some dates, and puts it in place table by table."""

    def __init__(self, root: Path, staged: Path, database: duckdb.DuckDBPyConnection) -> None:
        self._root = root
        self._staged = staged
        self._database = database
        self._silver = delta.files(root / "silver")

    def make_days(self, days: list[date], files: pa.Table) -> None:
        """Make what each node and gateway did in these days, and how fresh all are."""
        self._before = carried.heard_from(self._root)
        self._show_silver(days)
        self._database.register("quarantined", _quarantined(self._root, days, files))
        self._swap("node_day", NODE_ROWS, days)
        self._swap("gateway_day", GATEWAY_ROWS, days)
        self._make_freshness()

    def _make_freshness(self) -> None:
        for table, columns in (("node_day", NODE_DAY), ("gateway_day", GATEWAY_DAY)):
            folder = self._root / table
            found = [escaped(folder / unquote(each["path"])) for each in delta.files(folder)]
            rows = select(self._database, arrow_schema(columns), found)
            self._run([f"CREATE OR REPLACE TEMP VIEW {table} AS {rows}"])
        newest = self._database.sql(_FRESHNESS).to_arrow_table()
        delta.overwrite(self._root / "freshness", newest.cast(arrow_schema(FRESHNESS)))

    def make_readings(
        self, wanted: set[date], made: datetime | None, now: datetime, assets: pa.Table | None
    ) -> None:
        """Make the readings of these days, and of those that their values reach."""
        heard = carried.heard_from(self._root)
        last = carried.horizon(heard, now)
        times = [int(time.timestamp() * 1000) for time in heard.values()]
        self._database.register("heard", pa.table([list(heard), times], schema=arrow_schema(HEARD)))
        by_gateway = {} if assets is None else zones(assets)
        zoned = [list(by_gateway), list(by_gateway.values())]
        self._database.register("zones", pa.table(zoned, schema=arrow_schema(ZONES)))
        days = carried.reached(wanted, self._before, heard, made, last)
        further = 1
        while days:
            ends = {end for _, end in carried.runs(days) if end < last}
            changed = self._make_utc(sorted(days), ends, now)
            if assets is not None:
                self._make_local(days, now)
            days = carried.following(changed, further, last)
            further *= 2

    def _make_utc(self, days: list[date], ends: set[date], now: datetime) -> set[date]:
        """Make the readings of these days; return those of `ends` whose last values changed."""
        held = {end: self._held(end) for end in ends}
        self._space(days, now)
        for table, unit in WINDOWS.items():
            self._run(pieces(unit, days))
            self._swap(table, BY_WINDOW, days)
        return {end for end in ends if self._held(end) != held[end]}

    def _make_local(self, days: set[date], now: datetime) -> None:
        """Make the local days that share time with these days, each of which needs three of UTC."""
        delta.create(self._root / LOCAL, READINGS, DATE)
        shared = sorted({day + n * carried.DAY for day in days for n in (-1, 0, 1)})
        needed = sorted({day + n * carried.DAY for day in shared for n in (-1, 0, 1)})
        self._space(needed, now, local=True)
        self._run(pieces("day", shared, local=True))
        self._swap(LOCAL, BY_WINDOW, shared)

    def _held(self, end: date) -> set[tuple[object, ...]]:
        return carried.as_rows(carried.carried_from(self._root, [end]))

    def _space(self, days: list[date], now: datetime, *, local: bool = False) -> None:
        begun = [first - carried.DAY for first, _ in carried.runs(days)]
        self._database.register("carried", carried.carried_from(self._root, begun))
        self._show_silver(days)
        self._run(spaced(int(now.timestamp() * 1000), local=local))

    def _show_silver(self, days: list[date]) -> None:
        """Let the view `silver` show these days."""
        wanted, folder = set(days), self._root / "silver"
        near = [
            escaped(folder / unquote(each["path"]))
            for each in self._silver
            if each.get("partition.event_date") in wanted and each["num_records"]
        ]
        rows = select(self._database, arrow_schema(SILVER), near)
        self._run([f"CREATE OR REPLACE TEMP VIEW silver AS {rows}"])

    def _run(self, statements: Iterable[str]) -> None:
        for statement in statements:
            self._database.execute(statement)

    def _swap(self, table: str, rows: str, days: list[date]) -> None:
        """Put rows in the place of those which the table has of these days."""
        columns = names(TABLES.get(table, READINGS))
        order = ", ".join(name for name in ORDER if name in columns)
        folder, target = self._staged / table, self._root / table
        self._database.execute(
            f"COPY (SELECT {', '.join(columns)} FROM ({rows}) ORDER BY {order}) "
            f"TO {quoted(str(folder))} (FORMAT parquet, COMPRESSION zstd, PARTITION_BY ({DATE}))"
        )
        old = [each for each in delta.files(target) if each.get(f"partition.{DATE}") in days]
        added = delta.adopt(folder, target, f"made-{secrets.token_hex(8)}")
        delta.commit(target, added, delta.removals(old, DATE))
        shutil.rmtree(folder, ignore_errors=True)


def _quarantined(root: Path, dates: list[date], files: pa.Table) -> pa.Table:
    """Return what the quarantine holds of these dates by gateway, counted by reason."""
    counts: dict[tuple[str, date], Counter[str]] = {}
    for gateway, day, reason in _quarantine(root, files):
        if gateway is not None and day in dates:
            counts.setdefault((gateway, day), Counter())[reason] += 1
    columns = [(name, kind) for name, kind in GATEWAY_DAY if name in _QUARANTINED]
    schema = arrow_schema(tuple(columns))
    rows = [
        {"gateway_id": gateway, "date": day, "quarantined": list(reasons.items())}
        for (gateway, day), reasons in counts.items()
    ]
    return pa.Table.from_pylist(rows, schema=schema)


def _quarantine(root: Path, files: pa.Table) -> Iterable[Quarantined]:
    rows = on_disk.read_columns(root / "quarantine", QUARANTINE, COLUMNS)
    return quarantined(rows, marks_of(rows, files))
