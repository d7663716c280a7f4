"""`tidegate-pipeline run`: what `once` does, again and again."""

import argparse
import math
import signal
import threading
import time
from contextlib import suppress
from dataclasses import replace
from functools import cache, partial
from pathlib import Path
from typing import Any

from pipeline.commands.options import (
    add_followers,
    add_gold,
    add_landing,
    add_sizes,
    add_spark,
    add_tables,
    how_of,
    settings_of,
)
from pipeline.errors import BusyError, JobError, PipelineError
from pipeline.operation.preflight import check_installed

SECONDS = 60.0


def add_run(commands: Any) -> None:
    """Add the command to the parser's sub-commands."""
    run = commands.add_parser("run", help="repeat `once` until SIGTERM")
    add_landing(run)
    add_tables(run)
    run.add_argument(
        "--every",
        type=float,
        default=SECONDS,
        metavar="SECONDS",
        help="seconds between the starts of two runs",
    )
    run.add_argument(
        "--gold-every",
        type=float,
        default=0.0,
        metavar="SECONDS",
        help="seconds between two updates of the gold tables, at least; default: each run",
    )
    run.add_argument(
        "--metrics",
        type=Path,
        metavar="FILE",
        help="file for Prometheus text, written after each run",
    )
    run.add_argument(
        "--views", type=Path, metavar="FILE", help="file for DuckDB views, written after each run"
    )
    add_gold(run)
    add_followers(run)
    add_spark(run)
    add_sizes(run)
    run.set_defaults(run=run_service)


def run_service(options: argparse.Namespace) -> int:
    """Bring the tables up to the landing folder every so often; returns the exit status.

    SIGTERM ends it after the batch that is under way.
    """
    check_installed()
    from pipeline.operation.session import open_session

    if not options.every > 0:
        raise PipelineError(f"--every {options.every:g} is not more than 0 seconds")
    settings = settings_of(options)
    stopped = threading.Event()
    signal.signal(signal.SIGTERM, lambda *_: stopped.set())
    session = cache(partial(open_session, settings, service=True))
    how = replace(how_of(options), stopping=stopped.is_set)
    busy = False
    golden = -math.inf
    while not stopped.is_set():
        begun = time.monotonic()
        gold = how.gold and begun - golden >= options.gold_every
        try:
            _round(settings, session, replace(how, gold=gold), options)
            golden = begun if gold else golden
            busy = False
        except BusyError as error:  # such as a `compact`: the next round comes
            if not busy:
                print(error, flush=True)
            busy = True
        stopped.wait(max(0.0, options.every - (time.monotonic() - begun)))
    if session.cache_info().currsize:
        session().stop()
    return 0


def _round(settings: Any, session: Any, how: Any, options: argparse.Namespace) -> None:
    """Do one run, and say what it read."""
    from pipeline.operation.lineage import run_reported
    from pipeline.operation.once import REMAPPED
    from pipeline.operation.progress import bars
    from pipeline.operation.status import write_metrics
    from pipeline.operation.views import write_views

    begun = time.monotonic()
    try:
        with bars() as watch:
            totals = run_reported(settings, session, replace(how, watch=watch))
    except JobError:  # which the metrics tell; where they cannot be written, it goes before that
        if options.metrics is not None:
            with suppress(JobError, OSError):
                write_metrics(settings, options.metrics)
        raise
    if totals.remapped:
        print(REMAPPED, flush=True)
    if totals.files:
        seconds = time.monotonic() - begun
        print(f"read {totals.files:,} files in {seconds:.1f} s", flush=True)
    if options.views is not None and (totals.files or not options.views.exists()):
        write_views(settings.tables, options.views)
    if options.metrics is not None:
        write_metrics(settings, options.metrics)
