"""`tidegate-pipeline ledger`: what is missing, from whom, when and why."""

import argparse
import json
import sys
from typing import Any

from pipeline.commands.options import add_broker, add_tables, broker_of
from pipeline.errors import PipelineError
from pipeline.operation.preflight import check_python

EXIT_COMPLETE = 0
EXIT_INCOMPLETE = 3


def add_ledger(commands: Any) -> None:
    """Add the command to the parser's sub-commands."""
    ledger = commands.add_parser(
        "ledger", help="report missing messages by gateway, time and reason"
    )
    add_tables(ledger)
    ledger.add_argument("--gateway", metavar="ID", help="only this gateway")
    ledger.add_argument(
        "--all", action="store_true", help="also messages that a rule or policy dropped"
    )
    ledger.add_argument("--strict", action="store_true", help="count unreported numbers as missing")
    ledger.add_argument("--json", action="store_true", help="print one JSON object")
    ledger.add_argument(
        "--recall",
        action="store_true",
        help="request missing messages again from the gateways at --broker",
    )
    ledger.add_argument(
        "--wait", type=float, default=60.0, metavar="SECONDS", help="seconds for a gateway's answer"
    )
    add_broker(ledger)
    ledger.set_defaults(run=run_ledger)


def run_ledger(options: argparse.Namespace) -> int:
    """Print the report; returns the exit status."""
    check_python()
    from pipeline.ledger.report import complete, lines, read_boards, read_gaps, read_streams

    streams = read_streams(options.tables, options.gateway)
    boards = read_boards(options.tables, options.gateway)
    if options.gateway is not None and not streams:
        raise PipelineError(f"nothing is known of a gateway {options.gateway!r}")
    gaps = read_gaps(options.tables, options.gateway)
    good = complete(streams, strict=options.strict) and not boards
    if options.json:
        found = {"complete": good, "streams": streams, "gaps": gaps, "boards": boards}
        print(json.dumps(found, default=str))
    else:
        for line in lines(streams, gaps, boards, everything=options.all):
            print(line)
    if options.recall:
        _recall(options, gaps)
    return EXIT_COMPLETE if good else EXIT_INCOMPLETE


def _recall(options: argparse.Namespace, gaps: list[dict[str, Any]]) -> None:
    """Ask for what is missing, and say what comes; the next run reads it."""
    from pipeline.collect.recall import Recall, Wanted
    from pipeline.ledger.completeness import MISSING, NOT_REPORTED
    from pipeline.operation.progress import bars

    if options.broker is None:
        raise PipelineError("--recall needs --broker, or `broker` in [ledger] of the configuration")
    asked = (MISSING, NOT_REPORTED) if options.strict else (MISSING,)
    wanted = [
        Wanted(gap["gateway"], gap["epoch"], gap["stream"], gap["first"], gap["last"])
        for gap in gaps
        if gap["outcome"] in asked
    ]
    with bars() as watch:
        done = Recall(broker_of(options), wanted, _say, watch).run(options.wait)
    _say(
        f"requested {len(wanted):,} ranges: {done.messages:,} messages are on their way, "
        f"{done.arrived:,} arrived"
    )


def _say(line: str) -> None:
    """Tell on stderr, so that --json stays one object."""
    print(line, file=sys.stderr, flush=True)
