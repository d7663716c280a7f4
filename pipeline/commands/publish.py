"""`tidegate-pipeline publish`: copies of the tables in an object store."""

import argparse
from typing import Any

from pipeline.commands.options import add_tables, existing
from pipeline.errors import PipelineError
from pipeline.operation.preflight import check_python


def add_publish(commands: Any) -> None:
    """Add the command to the parser's sub-commands."""
    command = commands.add_parser("publish", help="update copies of the tables in an object store")
    command.add_argument(
        "--to",
        required=True,
        metavar="URL",
        help="s3://BUCKET/PREFIX (tidegate docs pipeline-platforms)",
    )
    add_tables(command)
    command.add_argument(
        "--vacuum",
        type=int,
        metavar="HOURS",
        help="delete files that no copy has used for so many hours",
    )
    command.add_argument("--replace", action="store_true", help="replace copies of other tables")
    command.set_defaults(run=run_publish)


def run_publish(options: argparse.Namespace) -> int:
    """Bring the copies up to the tables; returns the exit status."""
    check_python(("deltalake", "pyarrow"))
    from pipeline.operation.publish import publish

    if options.vacuum is not None and options.vacuum < 0:
        raise PipelineError(f"--vacuum {options.vacuum} is less than 0")
    done = publish(existing(options), options.to, anew=options.replace, vacuum=options.vacuum)
    print(
        f"{options.to}: {done.changed} of {done.tables} copies brought up to date, "
        f"{done.files:,} files with {done.bytes:,} bytes"
    )
    return 0
