"""`run`, `status`, `compact` and `vacuum`: what keeps the tables going."""

import argparse
import json
import re
import signal
import threading
import time
from functools import cache, partial
from pathlib import Path
from typing import Any

from pipeline.errors import PipelineError
from pipeline.preflight import check_installed, check_python
from pipeline.settings import LANDING, TABLES, Settings, make_settings

RUN_SECONDS = 60.0


def add_operate(commands: Any) -> None:
    """Add the commands to the parser's sub-commands."""
    run = _command(commands, "run", "do what `once` does again and again, until SIGTERM")
    run.add_argument("--every", type=float, default=RUN_SECONDS, metavar="SECONDS")
    run.add_argument("--master", metavar="URL", help="Spark master")
    run.add_argument("--metrics", type=Path, metavar="FILE", help="Prometheus text, after each run")
    run.set_defaults(run=run_service)
    status = _command(commands, "status", "say how the tables are")
    status.add_argument("--json", action="store_true", help="print one JSON object")
    status.add_argument("--metrics", type=Path, metavar="FILE", help="write Prometheus text")
    status.set_defaults(run=run_status)
    compact = _command(commands, "compact", "make many small files of the tables few large ones")
    compact.add_argument("--keep", type=days, metavar="400d", help="delete what is older")
    compact.set_defaults(run=run_compact)
    vacuum = _command(commands, "vacuum", "remove files that no table shows any more")
    vacuum.add_argument("--hours", type=int, default=168, help="for so long; default: 168")
    vacuum.set_defaults(run=run_vacuum)


def run_service(options: argparse.Namespace) -> int:
    """Bring the tables up to the landing folder every so often; returns the exit status."""
    check_installed()
    from pipeline.once import run_once
    from pipeline.runs import note_run
    from pipeline.session import open_session

    if options.every <= 0:
        raise PipelineError(f"--every {options.every:g} is not more than 0 seconds")
    settings = make_settings(options.landing, options.tables, options.master)
    stopped = threading.Event()
    signal.signal(signal.SIGTERM, lambda *_: stopped.set())
    session = cache(partial(open_session, settings))
    while not stopped.is_set():
        begun = time.monotonic()
        totals = run_once(settings, session)
        seconds = time.monotonic() - begun
        note_run(settings.tables, totals, seconds)
        if totals.files:
            print(f"read {totals.files:,} files in {seconds:.1f} s", flush=True)
        if options.metrics is not None:
            _write_metrics(settings, options.metrics)
        stopped.wait(max(0.0, options.every - seconds))
    return 0


def run_status(options: argparse.Namespace) -> int:
    """Print the figures; returns the exit status."""
    check_python()
    from pipeline.status import as_text, read_status

    settings = make_settings(options.landing, options.tables)
    if options.metrics is not None:
        _write_metrics(settings, options.metrics)
    figures = read_status(settings)
    print(json.dumps(figures) if options.json else as_text(figures))
    return 0


def run_compact(options: argparse.Namespace) -> int:
    """Compact the tables; returns the exit status."""
    check_python()
    from pipeline.maintain import compact, keep

    settings = _existing(options)
    if options.keep is not None:
        print(f"deleted {keep(settings, options.keep).rows_deleted:,} rows")
    done = compact(settings)
    print(f"{done.files_before:,} files are now {done.files_after:,}")
    return 0


def run_vacuum(options: argparse.Namespace) -> int:
    """Remove old files; returns the exit status."""
    check_python()
    from pipeline.maintain import vacuum

    if options.hours < 0:
        raise PipelineError(f"--hours {options.hours} is less than 0")
    print(f"removed {vacuum(_existing(options), options.hours):,} files")
    return 0


def _command(commands: Any, name: str, text: str) -> argparse.ArgumentParser:
    parser: argparse.ArgumentParser = commands.add_parser(name, help=text)
    for option, default in (("--landing", LANDING), ("--tables", TABLES)):
        parser.add_argument(
            option, type=Path, default=default, metavar="DIR", help="default: %(default)s"
        )
    return parser


def _existing(options: argparse.Namespace) -> Settings:
    settings = make_settings(options.landing, options.tables)
    if not settings.tables.is_dir():
        raise PipelineError(f"there are no tables in {settings.tables}")
    return settings


def _write_metrics(settings: Settings, file: Path) -> None:
    """Put the text in place whole, since a scraper may read at any time."""
    from pipeline.status import as_prometheus, read_status

    temporary = file.with_name(f".{file.name}.tmp")
    temporary.write_text(as_prometheus(read_status(settings)), encoding="utf-8")
    temporary.replace(file)


def days(text: str) -> int:
    """Return the days of a text such as 400d, for argparse."""
    found = re.fullmatch("([1-9][0-9]{0,5})d", text)
    if found is None:
        raise argparse.ArgumentTypeError(f"{text!r} is not a number of days such as 400d")
    return int(found[1])
