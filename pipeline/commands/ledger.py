"""`tidegate-pipeline ledger`: what is missing, from whom, when and why."""

import argparse
import json
from typing import Any

from pipeline.commands.options import add_tables
from pipeline.errors import PipelineError
from pipeline.operation.preflight import check_python

EXIT_COMPLETE = 0
EXIT_INCOMPLETE = 3


def add_ledger(commands: Any) -> None:
    """Add the command to the parser's sub-commands."""
    ledger = commands.add_parser("ledger", help="say what is missing, from whom, when and why")
    add_tables(ledger)
    ledger.add_argument("--gateway", metavar="ID", help="this gateway alone")
    ledger.add_argument("--all", action="store_true", help="also what a rule or policy took out")
    ledger.add_argument(
        "--strict", action="store_true", help="what has not been told yet is missing, too"
    )
    ledger.add_argument("--json", action="store_true", help="print one JSON object")
    ledger.set_defaults(run=run_ledger)


def run_ledger(options: argparse.Namespace) -> int:
    """Print the report; returns the exit status."""
    check_python()
    from pipeline.ledger.report import complete, lines, read_gaps, read_streams

    streams = read_streams(options.tables.resolve(), options.gateway)
    if options.gateway is not None and not streams:
        raise PipelineError(f"nothing is known of a gateway {options.gateway!r}")
    gaps = read_gaps(options.tables.resolve(), options.gateway)
    good = complete(streams, strict=options.strict)
    if options.json:
        print(json.dumps({"complete": good, "streams": streams, "gaps": gaps}, default=str))
    else:
        for line in lines(streams, gaps, everything=options.all):
            print(line)
    return EXIT_COMPLETE if good else EXIT_INCOMPLETE
