"""`tidegate-pipeline import`: a gateway's SQLite file into the landing folder."""

import argparse
import re
from pathlib import Path
from typing import Any

from pipeline.commands.options import add_landing
from pipeline.errors import PipelineError, writing
from pipeline.operation.preflight import check_arrow

_GATEWAY = re.compile("[A-Za-z0-9][A-Za-z0-9_-]{0,63}")


def add_import(commands: Any) -> None:
    """Add the command to the parser's sub-commands."""
    command = commands.add_parser("import", help="land the messages of a gateway's database")
    command.add_argument(
        "database", type=Path, metavar="FILE", help="the gateway's tidegate.db, or a copy"
    )
    command.add_argument("--gateway", required=True, metavar="ID", help="id of the gateway")
    command.add_argument(
        "--table",
        default="outbox",
        metavar="outbox|rejected|history",
        help="table of the database (outbox)",
    )
    add_landing(command)
    command.set_defaults(run=run_import)


def run_import(options: argparse.Namespace) -> int:
    """Write landing files; `once` takes each number that silver lacks. Returns the exit status."""
    check_arrow()
    from pipeline.collect.landing_writer import LandingWriter
    from pipeline.collect.message import Landed
    from pipeline.outbox.rows import ids, records

    if _GATEWAY.fullmatch(options.gateway) is None:
        raise PipelineError(f"gateway {options.gateway!r} is not 1 to 64 letters, digits, _ or -")
    first, last = ids(options.database, options.table)
    writer = LandingWriter(options.landing, "import")
    count = 0
    for rows in records(options.database, options.table, options.gateway, first, last):
        with writing(options.landing):
            writer.write([Landed(records=rows)])
        count += len(rows)
    print(f"landed {count:,} records of {options.database}")
    return 0
