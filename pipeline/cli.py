"""The command `tidegate-pipeline`."""

import argparse
import json
import logging
import sys
import time
from collections.abc import Iterator, Sequence
from datetime import datetime
from functools import partial
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pipeline.commands.backtest import add_backtest
from pipeline.commands.collect import add_collect
from pipeline.commands.import_database import add_import
from pipeline.commands.ledger import add_ledger
from pipeline.commands.operate import add_operate
from pipeline.commands.simulate import add_simulate
from pipeline.commands.suggest import add_suggest
from pipeline.errors import JobError, PipelineError
from pipeline.preflight import check_installed
from pipeline.settings import LANDING, MASTER, MASTER_VARIABLE, TABLES, make_settings

if TYPE_CHECKING:
    from pipeline.once import Totals

EXIT_OK = 0
EXIT_JOB_FAILED = 1
EXIT_CANNOT_RUN = 2
EXIT_INTERRUPTED = 130

STREAMS_SHOWN = 50
"""Streams that `once` prints a line for."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command; returns its exit status, after one line on stderr if that is not 0."""
    options = _parser().parse_args(arguments)
    logging.basicConfig(level=logging.CRITICAL)  # Py4J logs, by the root logger, what it raises
    try:
        status: int = options.run(options)
    except PipelineError as error:
        return _failed(str(error), EXIT_CANNOT_RUN)
    except OSError as error:
        where = f"{error.filename}: " if error.filename else ""
        return _failed(f"{where}{error.strerror or error}", EXIT_CANNOT_RUN)
    except JobError as error:
        return _failed(str(error), EXIT_JOB_FAILED)
    except KeyboardInterrupt:
        return _failed("interrupted; what was committed stays", EXIT_INTERRUPTED)
    return status


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="tidegate-pipeline", description="Turn the landing files of gateways into tables."
    )
    parser.add_argument("--version", action="version", version=f"%(prog)s {version('tidegate')}")
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")
    once = commands.add_parser("once", help="read the new landing files, print the totals, end")
    once.add_argument(
        "--landing", type=Path, default=LANDING, metavar="DIR", help="default: %(default)s"
    )
    once.add_argument(
        "--tables", type=Path, default=TABLES, metavar="DIR", help="default: %(default)s"
    )
    once.add_argument(
        "--verify", action="store_true", help="count the rows of every batch in the tables first"
    )
    once.add_argument("--json", action="store_true", help="print the totals as one JSON object")
    once.add_argument(
        "--master",
        metavar="URL",
        help=f"Spark master; default: ${MASTER_VARIABLE}, else {MASTER}",
    )
    once.add_argument("--no-gold", action="store_true", help="leave the gold tables for later")
    once.set_defaults(run=_once)
    add_ledger(commands)
    add_collect(commands)
    add_import(commands)
    add_operate(commands)
    add_simulate(commands)
    add_suggest(commands)
    add_backtest(commands)
    return parser


def _once(options: argparse.Namespace) -> int:
    check_installed()
    from pipeline.ledger.report import read_streams
    from pipeline.once import run_once
    from pipeline.runs import note_run
    from pipeline.session import open_session

    settings = make_settings(options.landing, options.tables, options.master)
    begun = time.monotonic()
    totals = run_once(
        settings, partial(open_session, settings), verify=options.verify, gold=not options.no_gold
    )
    note_run(settings.tables, totals, time.monotonic() - begun)
    if totals.left:
        name, reason = next(iter(totals.left.items()))
        _say(f"not read in {settings.landing}: {len(totals.left)} (first: {name}, {reason})")
    streams = read_streams(settings.tables)
    if options.json:
        print(_as_json(totals, streams))
        return EXIT_OK
    print(_as_table(totals))
    for line in _sums(streams):
        print(line)
    return EXIT_OK


def _as_json(totals: "Totals", streams: list[dict[str, Any]]) -> str:
    return json.dumps(
        {
            "bronze": totals.bronze,
            "silver": totals.silver,
            "quarantined": totals.quarantined,
            "reasons": dict(sorted(totals.reasons.items())),
            "files": totals.files,
            "left": totals.left,
            "streams": [stream | {"last_time": _shown(stream["last_time"])} for stream in streams],
        }
    )


def _shown(time: datetime | None) -> str | None:
    return time.isoformat() if time else None


def _sums(streams: list[dict[str, Any]]) -> Iterator[str]:
    """Yield a line for each of the streams that a ledger told of, or that have gaps."""
    from pipeline.ledger.report import sum_line

    told = [stream for stream in streams if stream["emitted"] != stream["delivered"]]
    yield from (sum_line(stream) for stream in told[:STREAMS_SHOWN])
    if len(told) > STREAMS_SHOWN:
        yield f"and {len(told) - STREAMS_SHOWN:,} more: `tidegate-pipeline ledger` tells all"


def _as_table(totals: "Totals") -> str:
    rows = [("bronze", totals.bronze), ("silver", totals.silver)]
    rows.append(("quarantined", totals.quarantined))
    rows += [(f"  {reason}", count) for reason, count in sorted(totals.reasons.items())]
    rows.append(("landing files read now", totals.files))
    return "\n".join(f"{name:<24}{count:>14,}" for name, count in rows)


def _failed(text: str, status: int) -> int:
    _say(text)
    return status


def _say(text: str) -> None:
    print(f"tidegate-pipeline: {text}", file=sys.stderr)


if __name__ == "__main__":
    sys.exit(main())
