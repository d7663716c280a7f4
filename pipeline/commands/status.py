"""`tidegate-pipeline status`: how the tables are."""

import argparse
import json
from pathlib import Path
from typing import Any

from pipeline.commands.options import add_landing, add_tables, existing, with_landing
from pipeline.operation.preflight import check_python


def add_status(commands: Any) -> None:
    """Add the command to the parser's sub-commands."""
    status = commands.add_parser("status", help="show the state of the tables")
    add_landing(status)
    add_tables(status)
    status.add_argument("--json", action="store_true", help="print one JSON object")
    status.add_argument("--metrics", type=Path, metavar="FILE", help="write Prometheus text")
    status.set_defaults(run=run_status)


def run_status(options: argparse.Namespace) -> int:
    """Print the figures; returns the exit status."""
    check_python()
    from pipeline.operation.status import as_text, read_status, write_metrics

    with_landing(options)
    settings = existing(options)
    if options.metrics is not None:
        write_metrics(settings, options.metrics)
    figures = read_status(settings)
    print(json.dumps(figures) if options.json else as_text(figures))
    return 0
