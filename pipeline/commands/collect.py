"""`tidegate-pipeline collect`: from the fleet's broker into landing files."""

import argparse
import signal
import threading
from typing import Any

from pipeline.commands.options import add_broker, add_landing, broker_of
from pipeline.errors import PipelineError
from pipeline.operation.preflight import check_arrow


def add_collect(commands: Any) -> None:
    """Add the command to the parser's sub-commands."""
    collect = commands.add_parser(
        "collect", help="write messages from the fleet's broker to landing files"
    )
    add_broker(collect, required=True)
    add_landing(collect)
    collect.add_argument(
        "--name", default="collector", help="client identifier; each collector has its own"
    )
    collect.add_argument(
        "--group", default="tidegate", help="name of a group of collectors that share the messages"
    )
    collect.add_argument("--rows", type=int, default=10_000, help="messages in a file at most")
    collect.add_argument("--seconds", type=float, default=2.0, help="age at which a file is closed")
    collect.add_argument(
        "--ledger-seconds",
        type=float,
        default=300.0,
        help="age at which a file with ledgers is closed",
    )
    collect.set_defaults(run=run_collect)


def run_collect(options: argparse.Namespace) -> int:
    """Collect until SIGTERM or SIGINT; returns the exit status."""
    check_arrow()
    from pipeline.collect.collector import CollectSettings, collect

    broker = broker_of(options)
    if not options.name.replace("-", "").replace("_", "").isalnum():
        raise PipelineError(f"name {options.name!r} is not letters, digits, - and _")
    if options.rows < 1 or options.seconds <= 0 or options.ledger_seconds <= 0:
        raise PipelineError("--rows, --seconds and --ledger-seconds must be more than 0")
    stopped = threading.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: stopped.set())
    settings = CollectSettings(
        broker=broker,
        landing=options.landing,
        name=options.name,
        group=options.group,
        rows=options.rows,
        seconds=options.seconds,
    )
    messages = collect(settings, options.ledger_seconds, stopped)
    print(f"collected {messages:,} messages")
    return 0
