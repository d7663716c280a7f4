"""The tables `streams` and `gaps`: what arrived beside what the ledger says."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from datetime import date, timedelta
from operator import itemgetter

import pyarrow as pa
import pyarrow.compute as pc

from pipeline.ledger.accounts import Key, accounts_of
from pipeline.ledger.completeness import OUTCOMES, Stream, compare
from pipeline.ledger.entry import Entry, Range
from pipeline.ledger.files import LedgerLine, order_of, reporter_of
from pipeline.tables import delta, islands, silver_numbers
from pipeline.tables.columns import GAPS, LEDGER, STREAMS, Columns, arrow_schema, names
from pipeline.tables.delta import Where
from pipeline.tables.islands import Island
from pipeline.tables.silver_numbers import portions

_KEYS = ("gateway", "epoch", "stream")
_TIMES = ("after", "before")
AT_ONCE = 500_000
"""Islands and ranges of ledgers that are compared at one time, a kilobyte each."""

Epoch = tuple[str, str]
"""Gateway and epoch."""
Starts = dict[Epoch, int]
"""The number of each start, by gateway and epoch."""


def make(
    root: Where,
    touched: set[Key] | None,
    note: Callable[[set[str]], None] = lambda _dates: None,
) -> None:
    """Make the rows of these streams' epochs anew, of all if None, some gateways at a time.

    `note` gets the dates of gaps that are other ones now, before the tables change.
    """
    epochs = None if touched is None else _by_gateway(touched)
    if epochs is None:
        _make_all(root)
        return
    for gateways in portions(sources(root), epochs, AT_ONCE):
        wanted = {each for name in gateways for each in epochs[name]}
        gaps, streams, starts = _made(root, gateways, wanted)
        note(_dates_changed(root, gaps, wanted, starts))
        _replace(root / "gaps", gaps, wanted)
        _replace(root / "streams", streams, wanted)


def _make_all(root: Where) -> None:
    """Make both tables anew: in one step each, unless there is more than one portion."""
    put = delta.overwrite
    for gateways in portions(sources(root), None, AT_ONCE):
        gaps, streams, _ = _made(root, gateways, None)
        put(root / "gaps", _ordered(gaps))
        put(root / "streams", _ordered(streams))
        put = delta.append_table
    if put is delta.overwrite:
        for table in ("gaps", "streams"):
            delta.remove_all(root / table)


def sources(root: Where) -> list[tuple[Where, str]]:
    """Return the tables that say what numbers there are, and the column of their gateways."""
    return [(root / silver_numbers.TABLE, "gateway_id"), (root / "ledger", "gateway_id")]


def _by_gateway(touched: set[Key]) -> dict[str, set[Epoch]]:
    found: dict[str, set[Epoch]] = {}
    for gateway, epoch, _ in touched:
        found.setdefault(gateway, set()).add((gateway, epoch))
    return found


def _made(
    root: Where, gateways: Sequence[str], epochs: set[Epoch] | None
) -> tuple[pa.Table, pa.Table, Starts]:
    """Return gaps and streams of these epochs of some gateways, of all if None, and all starts."""
    entries = delta.read_parts(root / "ledger", names(LEDGER), "gateway_id", gateways)
    starts = _starts(entries)
    if epochs is None:
        arrived = silver_numbers.merged(silver_numbers.of_gateways(root, gateways))
    else:
        arrived = silver_numbers.of_epochs(root, epochs)
        entries = entries.filter(silver_numbers.are_of(entries, epochs))
    compared = list(_compared(arrived, entries, starts))
    gaps = _rows((_times(gap._asdict()) for stream, _ in compared for gap in stream.gaps), GAPS)
    return gaps, _rows((_row(*each) for each in compared), STREAMS), starts


def _dates_changed(root: Where, new: pa.Table, epochs: set[Epoch], starts: Starts) -> set[str]:
    """Return the dates at the ends of gaps of these epochs that come, go or have another outcome.

    Why a sensor was silent in such a date may be another reason now. Not so where days lie between,
    since a silence is within a day, and with numbers behind the last row of the newest start, of
    which each report says more.
    """
    columns = [*_KEYS, "first", "last", "outcome", *_TIMES]
    old = delta.read_parts(root / "gaps", columns, "epoch", {epoch for _, epoch in epochs})
    old = old.filter(silver_numbers.are_of(old, epochs, "gateway"))
    counted = pa.concat_tables([old, new.select(columns)]).group_by(columns)
    both = counted.aggregate([([], "count_all")])
    other = both.filter(pc.equal(both["count_all"], 1))
    newest = _newest_starts(starts)
    found: set[date] = set()
    for row in other.select(["gateway", "epoch", *_TIMES]).to_pylist():
        after, before = row["after"], row["before"]
        if before is None and newest.get(row["gateway"], row["epoch"]) == row["epoch"]:
            continue
        days = {time.date() for time in (after, before) if time is not None}
        if days and max(days) - min(days) <= timedelta(1):
            found |= days
    return {str(day) for day in found}


def _newest_starts(starts: Starts) -> dict[str, str]:
    """Return the epoch of each gateway's newest start."""
    return {gateway: epoch for (gateway, epoch), _ in sorted(starts.items(), key=itemgetter(1))}


def _compared(
    arrived: pa.Table, entries: pa.Table, starts: Starts
) -> Iterator[tuple[Stream, int | None]]:
    """Yield each stream, beside the time (ms) of its newest number that arrived."""
    there: dict[Key, list[Island]] = {}
    for island in islands.each(arrived):
        there.setdefault(island[:3], []).append(island)
    accounts = {
        account.key: account for account in accounts_of(_ledger_lines(entries, starts), there)
    }
    for key in sorted(accounts):
        found = there.get(key, [])
        times = (island.last_time for island in found if island.last_time is not None)
        yield compare(accounts[key], found), max(times, default=None)


def _row(stream: Stream, newest: int | None) -> dict[str, object]:
    return (
        dict(zip(_KEYS, stream.key, strict=True))
        | {"emitted": stream.emitted}
        | {outcome: stream.outcomes.get(outcome, 0) for outcome in OUTCOMES}
        | {"last_time": _time(newest)}
    )


def _ledger_lines(entries: pa.Table, starts: Starts) -> Iterable[LedgerLine]:
    """Yield what rows of the table `ledger` say, as entries of one range each."""
    for row in entries.to_pylist():
        ranges: tuple[Range, ...] = ()
        previous = None
        if row["outcome"] is not None:
            ranges = (Range(row["first"], row["last"], row["outcome"], row["cause"]),)
        elif row["last"] is not None:
            previous = (row["epoch"], {row["stream"]: row["last"]})
        name = row["landing_file"]
        reporter = row["reporter"] or reporter_of(name) or row["epoch"]
        start = starts.get((row["gateway_id"], reporter))
        entry = Entry(row["epoch"], row["start"], row["stream"], ranges, previous)
        place = order_of(name), row["line"]
        yield LedgerLine(row["gateway_id"], reporter, *place, entry, start)


def _starts(entries: pa.Table) -> Starts:
    known = entries.filter(pc.is_valid(entries["start"])).group_by(["gateway_id", "epoch"])
    return {
        (row["gateway_id"], row["epoch"]): row["start_max"]
        for row in known.aggregate([("start", "max")]).to_pylist()
    }


def _rows(rows: Iterable[dict[str, object]], columns: Columns) -> pa.Table:
    return pa.Table.from_pylist(list(rows), schema=arrow_schema(columns))


def _replace(table: Where, new: pa.Table, epochs: set[Epoch]) -> None:
    """Put rows in the place of those of these epochs."""
    named = {epoch for _, epoch in epochs}
    there = delta.read_parts(table, new.column_names, "epoch", named)
    # A gateway that was renamed gave an epoch two names.
    stay = there.filter(pc.invert(silver_numbers.are_of(there, epochs, "gateway")))
    rows = pa.concat_tables([stay, new])
    if rows.num_rows or there.num_rows:
        delta.overwrite_parts(table, _ordered(rows), "epoch", named)


def _ordered(rows: pa.Table) -> pa.Table:
    order = [(name, "ascending") for name in (*_KEYS, "first") if name in rows.column_names]
    return rows.sort_by(order)


def _times(gap: dict[str, object]) -> dict[str, object]:
    after, before = gap.pop("after_ms"), gap.pop("before_ms")
    return gap | {"after": _time(after), "before": _time(before)}


def _time(ms: object) -> int | None:
    """Return microseconds, which Arrow takes for a timestamp."""
    return ms * 1000 if isinstance(ms, int) else None
