"""`tidegate-pipeline once`: the new landing files into the tables."""

import argparse
import json
import sys
from collections.abc import Iterator
from dataclasses import replace
from datetime import datetime
from functools import partial
from typing import TYPE_CHECKING, Any

from pipeline.commands.options import (
    add_followers,
    add_gold,
    add_landing,
    add_sizes,
    add_spark,
    add_tables,
    how_of,
    with_landing,
)
from pipeline.operation.preflight import check_installed
from pipeline.tables import cycles

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from pipeline.operation.once import Totals
    from pipeline.settings import Settings

DOUBLED = 1
"""The exit status if silver has a key more than once."""
STREAMS_SHOWN = 50
"""Streams that `once` prints a line for."""


def add_once(commands: Any) -> None:
    """Add the command to the parser's sub-commands."""
    once = commands.add_parser("once", help="turn new landing files into tables")
    add_landing(once)
    add_tables(once)
    once.add_argument(
        "--verify",
        action="store_true",
        help="first count the rows of every batch and search for duplicate keys",
    )
    once.add_argument("--json", action="store_true", help="print the totals as one JSON object")
    add_gold(once)
    add_followers(once)
    add_spark(once)
    add_sizes(once)
    once.set_defaults(run=run_command)


def _open_session(settings: "Settings") -> "SparkSession":
    """Start Spark, which a run with nothing new does not even import."""
    from pipeline.operation.session import open_session

    return open_session(settings)


def run_command(options: argparse.Namespace) -> int:
    """Bring the tables up to the landing folder, print what they hold; returns the exit status."""
    check_installed()
    cycles.look_rarely()
    from pipeline.ledger.report import read_streams
    from pipeline.operation.lineage import run_reported
    from pipeline.operation.once import REMAPPED
    from pipeline.operation.progress import bars

    settings = with_landing(options)
    with bars() as watch:
        how = replace(how_of(options), verify=options.verify, watch=watch)
        totals = run_reported(settings, partial(_open_session, settings), how)
    if totals.left:
        name, reason = next(iter(totals.left.items()))
        left = f"not read in {settings.landing}: {len(totals.left)} (first: {name}, {reason})"
        print(f"tidegate-pipeline: {left}", file=sys.stderr)
    if totals.remapped:
        print(f"tidegate-pipeline: {REMAPPED}", file=sys.stderr)
    if totals.doubled:
        keys, first = totals.doubled
        print(
            f"tidegate-pipeline: silver has {keys:,} keys more than once (first: {first})",
            file=sys.stderr,
        )
    streams = read_streams(settings.tables)
    if options.json:
        print(_as_json(totals, streams))
    else:
        print("\n".join([_as_table(totals), *_sums(streams)]))
    return DOUBLED if totals.doubled else 0


def _as_json(totals: "Totals", streams: list[dict[str, Any]]) -> str:
    return json.dumps(
        {
            "bronze": totals.bronze,
            "silver": totals.silver,
            "quarantined": totals.quarantined,
            "reasons": dict(sorted(totals.reasons.items())),
            "files": totals.files,
            "left": totals.left,
            "doubled": totals.doubled.keys if totals.doubled else 0,
            "streams": [stream | {"last_time": _shown(stream["last_time"])} for stream in streams],
        }
    )


def _shown(time: datetime | None) -> str | None:
    return time.isoformat() if time else None


def _sums(streams: list[dict[str, Any]]) -> Iterator[str]:
    """Yield a line for each of the streams that a ledger names, or that have gaps."""
    from pipeline.ledger.report import sum_line

    incomplete = [stream for stream in streams if stream["emitted"] != stream["delivered"]]
    yield from (sum_line(stream) for stream in incomplete[:STREAMS_SHOWN])
    if len(incomplete) > STREAMS_SHOWN:
        yield f"and {len(incomplete) - STREAMS_SHOWN:,} more: `tidegate-pipeline ledger` lists all"


def _as_table(totals: "Totals") -> str:
    rows = [("bronze", totals.bronze), ("silver", totals.silver)]
    rows.append(("quarantined", totals.quarantined))
    rows += [(f"  {reason}", count) for reason, count in sorted(totals.reasons.items())]
    rows.append(("landing files read now", totals.files))
    return "\n".join(f"{name:<24}{count:>14,}" for name, count in rows)
