"""The tables `streams` and `gaps`: what arrived beside what the ledger says."""

from collections.abc import Iterable
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc

from pipeline.ledger.accounts import Key, accounts_of
from pipeline.ledger.completeness import OUTCOMES, Stream, compare
from pipeline.ledger.entry import Entry, Range
from pipeline.ledger.files import Told, place_of
from pipeline.tables import delta, islands
from pipeline.tables.columns import GAPS, STREAMS, arrow_schema
from pipeline.tables.islands import Island

_KEYS = ("gateway", "epoch", "stream")


def make(root: Path, known: pa.Table, touched: set[Key] | None) -> None:
    """Make the rows of these streams anew, of all if None; `known` are silver's islands."""
    streams = _compared(root, known, touched)
    gaps = [_times(gap._asdict()) for stream in streams for gap in stream.gaps]
    _replace(root / "gaps", gaps, GAPS, touched)
    newest = {row["key"]: row["ms"] for row in _newest(known).to_pylist()}
    rows: list[dict[str, object]] = [
        dict(zip(_KEYS, stream.key, strict=True))
        | {"emitted": stream.emitted}
        | {outcome: stream.outcomes[outcome] for outcome in OUTCOMES}
        | {"last_time": _time(newest.get("/".join(stream.key)))}
        for stream in streams
    ]
    _replace(root / "streams", rows, STREAMS, touched)


def _compared(root: Path, known: pa.Table, touched: set[Key] | None) -> list[Stream]:
    epochs = None if touched is None else pa.array(sorted({key[1] for key in touched}), pa.string())
    arrived: dict[Key, list[Island]] = {}
    for island in islands.each(known if epochs is None else islands.of_epochs(known, epochs)):
        arrived.setdefault(island[:3], []).append(island)
    accounts = {account.key: account for account in accounts_of(_told(root, epochs), arrived)}
    asked = set(accounts) if touched is None else touched & set(accounts)
    return [compare(accounts[key], arrived.get(key, ())) for key in sorted(asked)]


def _told(root: Path, epochs: pa.Array | None) -> Iterable[Told]:
    """Yield what the table `ledger` says of these epochs, as entries of one range each."""
    filters = None if epochs is None else pc.field("epoch").isin(epochs)
    starts = _starts(root)
    for row in delta.read(root / "ledger", filters=filters).to_pylist():
        gateway, epoch, number = place_of(row["landing_file"])
        ranges: tuple[Range, ...] = ()
        previous = None
        if row["outcome"] is not None:
            ranges = (Range(row["first"], row["last"], row["outcome"], row["cause"]),)
        elif row["last"] is not None:
            previous = (row["epoch"], {row["stream"]: row["last"]})
        start = starts.get((gateway, epoch))
        entry = Entry(row["epoch"], row["start"], row["stream"], ranges, previous)
        yield Told(row["gateway_id"], epoch, number, row["line"], entry, start)


def _starts(root: Path) -> dict[tuple[str, str], int]:
    rows = delta.read(root / "ledger", ["gateway_id", "epoch", "start"])
    known = rows.filter(pc.is_valid(rows["start"])).group_by(["gateway_id", "epoch"])
    return {
        (row["gateway_id"], row["epoch"]): row["start_max"]
        for row in known.aggregate([("start", "max")]).to_pylist()
    }


def _newest(known: pa.Table) -> pa.Table:
    key = pc.binary_join_element_wise(known["gateway_id"], known["epoch"], known["stream"], "/")
    table = pa.table({"key": key, "ms": known["last_time"]})
    return table.group_by("key").aggregate([("ms", "max")]).rename_columns(["key", "ms"])


def _replace(
    table: Path,
    rows: list[dict[str, object]],
    columns: tuple[tuple[str, str], ...],
    touched: set[Key] | None,
) -> None:
    new = pa.Table.from_pylist(rows, schema=arrow_schema(columns))
    if touched is not None:
        old = delta.read(table, [name for name, _ in columns])
        named = pc.binary_join_element_wise(*(old[name] for name in _KEYS), "/")
        gone = pa.array(["/".join(key) for key in touched], pa.string())
        stay = old.filter(pc.invert(pc.is_in(named, value_set=gone)))
        new = pa.concat_tables([stay.cast(new.schema), new])
    order = [(name, "ascending") for name in (*_KEYS, "first") if name in new.column_names]
    delta.overwrite(table, new.sort_by(order))


def _times(gap: dict[str, object]) -> dict[str, object]:
    after, before = gap.pop("after_ms"), gap.pop("before_ms")
    return gap | {"after": _time(after), "before": _time(before)}


def _time(ms: object) -> int | None:
    """Return microseconds, which Arrow takes for a timestamp."""
    return ms * 1000 if isinstance(ms, int) else None
