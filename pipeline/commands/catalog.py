"""`tidegate-pipeline catalog`: SQL that registers the tables in a catalog of another engine."""

import argparse
from typing import Any

from pipeline.commands.options import add_tables, existing
from pipeline.operation.catalogs import ENGINES, statements
from pipeline.operation.preflight import check_python


def add_catalog(commands: Any) -> None:
    """Add the command to the parser's sub-commands."""
    command = commands.add_parser("catalog", help="print SQL that registers the tables")
    command.add_argument("engine", choices=tuple(ENGINES), help="the engine that runs the SQL")
    add_tables(command)
    place = "where the engine finds the tables, such as their copies; default: the folder"
    command.add_argument("--at", metavar="URL", help=place)
    schema = "SCHEMA or CATALOG.SCHEMA of the tables; default: tidegate, of Trino delta.tidegate"
    command.add_argument("--schema", metavar="NAME", help=schema)
    command.set_defaults(run=run_catalog)


def run_catalog(options: argparse.Namespace) -> int:
    """Print the statements; returns the exit status."""
    check_python(("deltalake", "pyarrow"))
    from pipeline.tables import delta

    root = existing(options).tables
    place = options.at or (f"{root}" if root.folder is None else f"file://{root}")
    tables = delta.tables_in(root)
    print("\n".join(statements(options.engine, tables, place, options.schema)))
    return 0
