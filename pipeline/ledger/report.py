"""What is missing, from whom, when and why, in words for a person or as JSON."""

from collections import Counter
from collections.abc import Iterable, Iterator
from datetime import datetime
from typing import Any

from pipeline.errors import PipelineError
from pipeline.ledger.boards import FORK
from pipeline.ledger.completeness import BAD, MISSING, NOT_REPORTED, OUTCOMES, UNRECORDED
from pipeline.printable import printable
from pipeline.tables import delta
from pipeline.tables.delta import Where

GAPS_SHOWN = 100
"""Gaps that are listed one by one; of further ones only the number."""

Row = dict[str, Any]

WHY = {
    MISSING: "the gateway reports that the fleet acknowledged them, but no landing file has them",
    "lost": "the gateway lost them: {cause}",
    "evicted": "dropped at the gateway to free space ({cause})",
    "expired": "too old before they could be sent ({cause})",
    "rejected": "the fleet's broker refused them ({cause})",
    "filtered": "no rule accepted them ({cause})",
    NOT_REPORTED: "the gateway has not reported yet: they may still wait there",
    UNRECORDED: "they are unknown, and none was acknowledged: {cause}",
}

EARLIER = "not_told"
"""What NOT_REPORTED was called in tables of earlier versions, until the next run."""

_NOT_ON_PURPOSE = (*BAD, NOT_REPORTED, UNRECORDED, "rejected")


def is_earlier(root: Where) -> bool:
    """Say whether the tables have the names of an earlier version, until the next run."""
    found = delta.lookup(root / "streams")
    return found is not None and EARLIER in {field.name for field in found.schema().fields}


def check_version(root: Where) -> None:
    """Raise PipelineError if they do."""
    if is_earlier(root):
        raise PipelineError(
            f"the tables in {root} are of an earlier version: run `tidegate-pipeline once` first"
        )


def read_streams(root: Where, gateway: str | None = None) -> list[Row]:
    """Return the rows of `streams`, those of one gateway if it is named."""
    return _rows(root, "streams", gateway)


def read_gaps(root: Where, gateway: str | None = None) -> list[Row]:
    """Return the rows of `gaps`, those of one gateway if it is named."""
    return _rows(root, "gaps", gateway)


def read_boards(root: Where, gateway: str | None = None) -> list[Row]:
    """Return the rows of `boards`, those of one gateway if it is named."""
    return _rows(root, "boards", gateway) if delta.exists(root / "boards") else []


def complete(streams: Iterable[Row], *, strict: bool) -> bool:
    """Say whether nothing is missing or lost, and with `strict` that all has been reported."""
    bad = (*BAD, NOT_REPORTED) if strict else BAD
    return not any(stream[outcome] for stream in streams for outcome in bad)


def sum_line(stream: Row) -> str:
    """Return a stream's numbers by outcome as one line."""
    parts = " + ".join(
        f"{outcome.replace('_', ' ')} {stream[outcome]:,}"
        for outcome in OUTCOMES
        if stream[outcome]
    )
    name = f"{stream['gateway']}/{stream['epoch']}/{stream['stream']}"
    return f"{name}: {parts or '0'} = emitted {stream['emitted']:,}"


def lines(
    streams: list[Row], gaps: list[Row], boards: list[Row], *, everything: bool
) -> Iterator[str]:
    """Yield the report; gaps that a rule or a policy made on purpose only with `everything`."""
    yield from map(_board_line, boards)
    total = Counter[str]()
    for stream in streams:
        total.update({name: stream[name] or 0 for name in (*OUTCOMES, "emitted")})
    shown = [gap for gap in gaps if everything or gap["outcome"] in _NOT_ON_PURPOSE]
    shown.sort(key=lambda gap: OUTCOMES.index(gap["outcome"]) if gap["outcome"] != MISSING else -1)
    for gap in shown[:GAPS_SHOWN]:
        yield _gap_line(gap)
    if len(shown) > GAPS_SHOWN:
        yield f"and {len(shown) - GAPS_SHOWN:,} more gaps"
    parts = " + ".join(
        f"{name.replace('_', ' ')} {total[name]:,}" for name in OUTCOMES if total[name]
    )
    gateways = len({stream["gateway"] for stream in streams})
    yield f"{gateways:,} gateways, {len(streams):,} streams"
    yield f"{parts or '0'} = emitted {total['emitted']:,}"
    bad = sum(total[outcome] for outcome in BAD)
    if bad:
        yield f"NOT COMPLETE: {bad:,} numbers are missing or lost"
    elif boards:
        yield "NOT CERTAIN: two boards have one name, and their ledgers cannot say what is missing"
    else:
        yield "complete: nothing is missing"


def _board_line(row: Row) -> str:
    """Return what is to be said of two boards under one name."""
    why = "their ledgers fork" if row["reason"] == FORK else "their messages alternate"
    between = f"between {_shown(row['first_time'])} and {_shown(row['last_time'])} UTC"
    return printable(
        f"two boards: {row['gateway']} ran twice {between}, as epochs {row['epoch']} and "
        f"{row['other_epoch']}: {why}. Give one of them another gateway id"
    )


def _gap_line(gap: Row) -> str:
    count = gap["last"] - gap["first"] + 1
    numbers = f"number {gap['first']}" if count == 1 else f"numbers {gap['first']} to {gap['last']}"
    why = WHY[gap["outcome"]].format(cause=gap["cause"] or "no reason given")
    name = f"{gap['gateway']}/{gap['epoch']}/{gap['stream']}"
    label = gap["outcome"].replace("_", " ")
    return printable(f"{label}: {name} {numbers} ({count:,}){_when(gap)}: {why}")


def _when(gap: Row) -> str:
    after, before = _shown(gap["after"]), _shown(gap["before"])
    if after and before:
        return f" between {after} and {before} UTC"
    if after:
        return f" after {after} UTC"
    return f" before {before} UTC" if before else ""


def _shown(time: datetime | None) -> str:
    return time.strftime("%Y-%m-%d %H:%M:%S") if time else ""


def _rows(root: Where, table: str, gateway: str | None) -> list[Row]:
    if not delta.exists(root / table):
        raise PipelineError(f"there are no tables in {root}: run `tidegate-pipeline once` first")
    check_version(root)
    rows: list[Row] = delta.read_all(root / table).to_pylist()
    return [row for row in rows if gateway is None or row["gateway"] == gateway]
