"""`tidegate-pipeline suggest`: uplink rules that keep a reader's error within a bound."""

import argparse
import json
import math
from dataclasses import replace
from typing import Any

from pipeline.commands.options import add_spark, add_tables, days, existing
from pipeline.errors import PipelineError
from pipeline.operation.preflight import check_installed

HEARTBEAT = 3600


def add_suggest(commands: Any) -> None:
    """Add the command to the parser's sub-commands."""
    command = commands.add_parser("suggest", help="propose a rule for each quantity")
    command.add_argument("--error", default="1%", metavar="0.5|1%", help="default: %(default)s")
    command.add_argument(
        "--heartbeat",
        type=int,
        default=HEARTBEAT,
        metavar="SECONDS",
        help="seconds without a message after which one is sent",
    )
    add_tables(command)
    command.add_argument(
        "--last", type=days, metavar="30d", help="last days of the tables, such as 30d"
    )
    command.add_argument("--gateway", metavar="ID", help="id of a gateway")
    command.add_argument("--json", action="store_true", help="print one JSON object")
    add_spark(command)
    command.set_defaults(run=run_suggest)


def run_suggest(options: argparse.Namespace) -> int:
    """Print the rules; returns the exit status."""
    amount, share = _bound(options.error)
    if options.heartbeat < 1:
        raise PipelineError(f"--heartbeat {options.heartbeat} is less than 1 second")
    check_installed()
    from pipeline.backtest.run import Asked, has_tables
    from pipeline.backtest.suggest import Bound, as_toml, suggest
    from pipeline.operation.once import read_only
    from pipeline.operation.session import open_session

    settings = replace(existing(options), reads_only=True)
    if not has_tables(settings.tables):
        raise PipelineError(f"there are no tables in {settings.tables}")
    asked = Asked("TRUE", None, options.last, options.gateway)
    bound = Bound(amount, share, options.heartbeat)
    found = read_only(
        settings, lambda: list(suggest(open_session(settings), settings, asked, bound))
    )
    if options.json:
        print(json.dumps([each._asdict() for each in found]))
    else:
        print(as_toml(found), end="")
    return 0


def _bound(text: str) -> tuple[float, bool]:
    """Return a number, and whether it is a share of the range."""
    try:
        amount = float(text.removesuffix("%"))
    except ValueError:
        amount = 0.0
    if not math.isfinite(amount) or amount <= 0:
        raise PipelineError(f"--error {text!r} is no number above 0, nor a percentage such as 1%")
    return (amount / 100, True) if text.endswith("%") else (amount, False)
