"""The tables `streams` and `gaps`: what arrived beside what the ledger says."""

from collections.abc import Callable, Iterable, Iterator
from datetime import date, timedelta
from operator import itemgetter

import pyarrow as pa
import pyarrow.compute as pc

from pipeline.ledger.accounts import Key, accounts_of
from pipeline.ledger.completeness import OUTCOMES, Stream, compare
from pipeline.ledger.entry import Entry, Range
from pipeline.ledger.files import LedgerLine, order_of, reporter_of
from pipeline.tables import delta, islands
from pipeline.tables.columns import GAPS, STREAMS, Columns, arrow_schema
from pipeline.tables.delta import Where
from pipeline.tables.islands import Island

_KEYS = ("gateway", "epoch", "stream")
_TIMES = ("after", "before")
AT_ONCE = 500_000
"""Islands and ranges of ledgers that are compared at one time, a kilobyte each."""

Starts = dict[tuple[str, str], int]
"""The number of each start, by gateway and epoch."""


def make(
    root: Where,
    known: pa.Table,
    touched: set[Key] | None,
    note: Callable[[set[str]], None] = lambda _dates: None,
) -> None:
    """Make the rows of these streams' epochs anew, of all if None; `known` are silver's islands.

    `note` gets the dates of gaps that are other ones now, before the tables change.
    """
    starts, newest = _starts(root), _newest(known)
    gaps, streams = [_rows([], GAPS)], [_rows([], STREAMS)]
    for epochs in _portions(root, known, touched):
        compared = _compared(root, known, epochs, starts)
        found = (_times(gap._asdict()) for stream in compared for gap in stream.gaps)
        gaps.append(_rows(found, GAPS))
        streams.append(_rows((_row(stream, newest) for stream in compared), STREAMS))
    changed = None if touched is None else {key[1] for key in touched}
    if changed is not None:
        note(_dates_changed(root, pa.concat_tables(gaps), changed, starts))
    _replace(root / "gaps", pa.concat_tables(gaps), changed)
    _replace(root / "streams", pa.concat_tables(streams), changed)


def _dates_changed(root: Where, new: pa.Table, epochs: set[str], starts: Starts) -> set[str]:
    """Return the dates at the ends of gaps of these epochs that come, go or have another outcome.

    Why a sensor was silent in such a date may be another reason now. Not so where days lie between,
    since a silence is within a day, and with numbers behind the last row of the newest start, of
    which each report says more.
    """
    columns = [*_KEYS, "first", "last", "outcome", *_TIMES]
    old = delta.read_parts(root / "gaps", columns, "epoch", epochs)
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


def _portions(root: Where, known: pa.Table, touched: set[Key] | None) -> Iterator[pa.Array]:
    """Yield the epochs of these streams, of all if None, some at a time."""
    ranges = delta.read(root / "ledger", ["epoch"])["epoch"].cast(pa.string())
    counted = pc.value_counts(
        pa.chunked_array([*known["epoch"].chunks, *ranges.chunks], pa.string())
    )
    sizes = dict(
        zip(counted.field("values").to_pylist(), counted.field("counts").to_pylist(), strict=True)
    )
    portion: list[str] = []
    held = 0
    for epoch in sorted(sizes if touched is None else {key[1] for key in touched}):
        portion.append(epoch)
        held += sizes.get(epoch, 0)
        if held >= AT_ONCE:
            yield pa.array(portion, pa.string())
            portion, held = [], 0
    if portion:
        yield pa.array(portion, pa.string())


def _compared(root: Where, known: pa.Table, epochs: pa.Array, starts: Starts) -> list[Stream]:
    arrived: dict[Key, list[Island]] = {}
    for island in islands.each(islands.of_epochs(known, epochs)):
        arrived.setdefault(island[:3], []).append(island)
    accounts = {
        account.key: account
        for account in accounts_of(_ledger_lines(root, epochs, starts), arrived)
    }
    return [compare(accounts[key], arrived.get(key, ())) for key in sorted(accounts)]


def _row(stream: Stream, newest: dict[str, int | None]) -> dict[str, object]:
    return (
        dict(zip(_KEYS, stream.key, strict=True))
        | {"emitted": stream.emitted}
        | {outcome: stream.outcomes[outcome] for outcome in OUTCOMES}
        | {"last_time": _time(newest.get("/".join(stream.key)))}
    )


def _ledger_lines(root: Where, epochs: pa.Array, starts: Starts) -> Iterable[LedgerLine]:
    """Yield what the table `ledger` says of these epochs, as entries of one range each."""
    for row in delta.read(root / "ledger", filters=pc.field("epoch").isin(epochs)).to_pylist():
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


def _starts(root: Where) -> Starts:
    rows = delta.read(root / "ledger", ["gateway_id", "epoch", "start"])
    known = rows.filter(pc.is_valid(rows["start"])).group_by(["gateway_id", "epoch"])
    return {
        (row["gateway_id"], row["epoch"]): row["start_max"]
        for row in known.aggregate([("start", "max")]).to_pylist()
    }


def _newest(known: pa.Table) -> dict[str, int | None]:
    """Return the time of the newest number of each stream."""
    key = pc.binary_join_element_wise(known["gateway_id"], known["epoch"], known["stream"], "/")
    table = pa.table({"key": key, "ms": known["last_time"]})
    newest = table.group_by("key").aggregate([("ms", "max")])
    return dict(zip(newest["key"].to_pylist(), newest["ms_max"].to_pylist(), strict=True))


def _rows(rows: Iterable[dict[str, object]], columns: Columns) -> pa.Table:
    return pa.Table.from_pylist(list(rows), schema=arrow_schema(columns))


def _replace(table: Where, new: pa.Table, epochs: set[str] | None) -> None:
    order = [(name, "ascending") for name in (*_KEYS, "first") if name in new.column_names]
    if epochs is None:
        delta.overwrite(table, new.sort_by(order))
    else:
        delta.overwrite_parts(table, new.sort_by(order), "epoch", epochs)


def _times(gap: dict[str, object]) -> dict[str, object]:
    after, before = gap.pop("after_ms"), gap.pop("before_ms")
    return gap | {"after": _time(after), "before": _time(before)}


def _time(ms: object) -> int | None:
    """Return microseconds, which Arrow takes for a timestamp."""
    return ms * 1000 if isinstance(ms, int) else None
