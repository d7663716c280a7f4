"""`tidegate-pipeline backtest`: what a rule would have sent."""

import argparse
import json
from dataclasses import replace
from pathlib import Path
from typing import Any

from pipeline.commands.options import add_spark, add_tables, days, existing
from pipeline.errors import PipelineError, writing
from pipeline.operation.preflight import check_installed

TARIFF = 0.0


def add_backtest(commands: Any) -> None:
    """Add the command to the parser's sub-commands."""
    command = commands.add_parser("backtest", help="compute what a rule would have sent")
    command.add_argument("rule", metavar="EXPRESSION", help="an uplink rule's `where`")
    add_tables(command)
    command.add_argument(
        "--last", type=days, metavar="30d", help="last days of the tables, such as 30d"
    )
    command.add_argument("--gateway", metavar="ID", help="id of a gateway")
    command.add_argument(
        "--alarm", metavar="EXPRESSION", help="expression for messages that must be sent"
    )
    command.add_argument(
        "--tariff", type=float, default=TARIFF, metavar="PRICE", help="price of a megabyte"
    )
    command.add_argument("--json", action="store_true", help="print one JSON object")
    command.add_argument(
        "--report", type=Path, metavar="FILE.html", help="HTML file for the report"
    )
    add_spark(command)
    command.set_defaults(run=run_backtest)


def run_backtest(options: argparse.Namespace) -> int:
    """Print what the rule would have sent; returns the exit status."""
    from gateway.where.language.errors import WhereError
    from gateway.where.rule import compile_rule

    for text in filter(None, (options.rule, options.alarm)):
        try:
            compile_rule(text)
        except WhereError as error:
            raise PipelineError(f"{text!r}: {error}") from None
    check_installed()
    from pipeline.backtest import result, run
    from pipeline.backtest.fold import Sums
    from pipeline.operation.once import read_only
    from pipeline.operation.session import open_session

    settings = replace(existing(options), reads_only=True)
    if not run.has_tables(settings.tables):
        raise PipelineError(f"there are no tables in {settings.tables}")
    asked = run.Asked(options.rule, options.alarm, options.last, options.gateway)

    def tried() -> tuple[list[Sums], result.Worst]:
        rows = run.messages(open_session(settings), settings, asked)
        sums = [Sums(*row) for row in run.day_sums(rows, asked).collect()]
        return sums, run.worst(rows, sums, asked) if options.report else result.Worst()

    sums, worst = read_only(settings, tried)
    found = result.figures(sums, options.tariff)
    if options.report:
        page = result.as_page(options.rule, options.alarm, found, worst)
        with writing(options.report):
            options.report.write_text(page, encoding="utf-8")
    print(json.dumps(found) if options.json else result.as_text(options.rule, found))
    return 0
