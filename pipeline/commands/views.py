"""`tidegate-pipeline views`: a DuckDB file with a view of each table."""

import argparse
from pathlib import Path
from typing import Any

from pipeline.commands.options import add_tables, existing
from pipeline.operation.preflight import check_python


def add_views(commands: Any) -> None:
    """Add the command to the parser's sub-commands."""
    command = commands.add_parser("views", help="write a DuckDB file with a view of each table")
    command.add_argument("file", type=Path, metavar="FILE.duckdb", help="file to write")
    add_tables(command)
    command.set_defaults(run=run_views)


def run_views(options: argparse.Namespace) -> int:
    """Write the file; returns the exit status."""
    check_python(("deltalake", "duckdb", "pyarrow"))
    from pipeline.operation.views import write_views

    settings = existing(options)
    shown = write_views(settings.tables, options.file)
    print(f"{options.file}: {', '.join(shown)}")
    return 0
