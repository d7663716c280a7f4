"""`tidegate-pipeline reprocess`: rows of silver again, as payloads are read now."""

import argparse
import json
from datetime import date
from functools import partial
from typing import Any

from pipeline.commands.options import add_gold, add_spark, add_tables, existing, how_of
from pipeline.errors import PipelineError
from pipeline.operation.preflight import check_installed


def add_reprocess(commands: Any) -> None:
    """Add the command to the parser's sub-commands."""
    command = commands.add_parser("reprocess", help="read payloads in the tables again")
    add_tables(command)
    command.add_argument("--gateway", metavar="ID", help="id of a gateway")
    command.add_argument("--topic", metavar="FILTER", help="topic filter")
    command.add_argument(
        "--from", dest="first", type=_date, metavar="DATE", help="first event date"
    )
    command.add_argument("--to", dest="last", type=_date, metavar="DATE", help="last event date")
    command.add_argument("--json", action="store_true", help="print one JSON object")
    add_gold(command)
    add_spark(command)
    command.set_defaults(run=run_reprocess)


def _date(text: str) -> date:
    try:
        return date.fromisoformat(text)
    except ValueError:
        raise argparse.ArgumentTypeError(f"{text!r} is not a date such as 2025-11-21") from None


def run_reprocess(options: argparse.Namespace) -> int:
    """Read the chosen messages again, and say how many; returns the exit status."""
    _check(options)
    check_installed()
    from dataclasses import replace

    from pipeline.operation.progress import bars
    from pipeline.operation.reprocess import Selection, reprocess
    from pipeline.operation.session import open_session

    settings = existing(options)
    chosen = Selection(options.gateway, options.topic, options.first, options.last)
    with bars() as watch:
        how = replace(how_of(options), watch=watch)
        done = reprocess(settings, partial(open_session, settings), chosen, how)
    if options.json:
        print(json.dumps(done._asdict()))
    else:
        print(f"read {done.messages:,} messages again: {done.rows:,} rows of {done.dates:,} dates")
    return 0


def _check(options: argparse.Namespace) -> None:
    from gateway.mqtt.errors import MqttError
    from gateway.mqtt.topics import check_topic_filter

    if options.first and options.last and options.first > options.last:
        raise PipelineError(f"--from {options.first} is later than --to {options.last}")
    if options.topic is not None:
        try:
            check_topic_filter(options.topic)
        except MqttError as error:
            raise PipelineError(f"--topic: {error.reason}") from None
