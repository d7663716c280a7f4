"""`tidegate-pipeline compact` and `vacuum`: fewer files, and an end to old ones."""

import argparse
from typing import Any

from pipeline.commands.options import add_tables, days, existing
from pipeline.errors import PipelineError
from pipeline.operation.preflight import check_python


def add_maintain(commands: Any) -> None:
    """Add the commands to the parser's sub-commands."""
    compact = commands.add_parser("compact", help="join small files of the tables")
    add_tables(compact)
    compact.add_argument("--keep", type=days, metavar="400d", help="delete rows that are older")
    compact.set_defaults(run=run_compact)
    vacuum = commands.add_parser("vacuum", help="delete files that no table uses")
    add_tables(vacuum)
    vacuum.add_argument("--hours", type=int, default=168, help="hours without use; default: 168")
    vacuum.set_defaults(run=run_vacuum)


def run_compact(options: argparse.Namespace) -> int:
    """Compact the tables; returns the exit status."""
    check_python()
    from pipeline.operation.maintain import compact, keep

    settings = existing(options)
    if options.keep is not None:
        print(f"deleted {keep(settings, options.keep).rows_deleted:,} rows")
    done = compact(settings)
    print(f"{done.files_before:,} files are now {done.files_after:,}")
    return 0


def run_vacuum(options: argparse.Namespace) -> int:
    """Remove old files; returns the exit status."""
    check_python()
    from pipeline.operation.maintain import vacuum

    if options.hours < 0:
        raise PipelineError(f"--hours {options.hours} is less than 0")
    print(f"removed {vacuum(existing(options), options.hours):,} files")
    return 0
