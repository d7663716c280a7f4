"""The command `tidegate-pipeline`."""

import argparse
import logging
import os
import re
import select
import sys
from collections.abc import Sequence
from pathlib import Path

from pipeline.commands.backtest import add_backtest
from pipeline.commands.catalog import add_catalog
from pipeline.commands.collect import add_collect
from pipeline.commands.import_database import add_import
from pipeline.commands.ledger import add_ledger
from pipeline.commands.maintain import add_maintain
from pipeline.commands.once import add_once
from pipeline.commands.publish import add_publish
from pipeline.commands.reprocess import add_reprocess
from pipeline.commands.run import add_run
from pipeline.commands.simulate import add_simulate
from pipeline.commands.status import add_status
from pipeline.commands.suggest import add_suggest
from pipeline.commands.views import add_views
from pipeline.config import VARIABLE, CommandParser, config_file, configure
from pipeline.errors import BusyError, JobError, PipelineError
from pipeline.printable import printable

EXIT_JOB_FAILED = 1
EXIT_CANNOT_RUN = 2
EXIT_BUSY = 75  # EX_TEMPFAIL of sysexits.h: try again later
EXIT_INTERRUPTED = 130
EXIT_READER_GONE = 141  # a shell's status for SIGPIPE

STDOUT = 1

_BACKTRACE = re.compile(r"\n\s*0: ")
_COLOUR = re.compile(r"\x1b\[[0-9;]*m")

ADD = (
    *(add_once, add_run, add_status, add_ledger, add_collect, add_import, add_views, add_catalog),
    *(add_publish, add_maintain, add_reprocess, add_backtest, add_suggest, add_simulate),
)


class ShowVersion(argparse.Action):
    """Prints the distribution's version, which takes 25 ms to find out, and ends the program."""

    def __call__(self, parser: argparse.ArgumentParser, *_: object) -> None:
        """Print it."""
        from importlib.metadata import version

        print(f"{parser.prog} {version('tidegate')}")
        parser.exit()


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command; returns its exit status, after one line on stderr if that is not 0."""
    logging.basicConfig(level=logging.CRITICAL)  # Py4J logs, by the root logger, what it raises
    try:
        options = _options(sys.argv[1:] if arguments is None else arguments)
        status: int = options.run(options)
        print(end="", flush=True)  # a reader that is gone raises here, not at the interpreter's end
    except BusyError as error:
        return _failed(str(error), EXIT_BUSY)
    except PipelineError as error:
        return _failed(str(error), EXIT_CANNOT_RUN)
    except OSError as error:
        if isinstance(error, BrokenPipeError) and _reader_is_gone():
            return EXIT_READER_GONE
        where = f"{error.filename}: " if error.filename else ""
        return _failed(f"{where}{error.strerror or error}", EXIT_CANNOT_RUN)
    except JobError as error:
        return _failed(str(error), EXIT_JOB_FAILED)
    except _table_errors() as error:
        return _failed(str(error), EXIT_JOB_FAILED)
    except KeyboardInterrupt:
        return _failed("interrupted; what was committed is complete", EXIT_INTERRUPTED)
    return status


def _reader_is_gone() -> bool:
    """Say whether nobody reads the output, as after `| head`; if so, drop what is left of it."""
    output = select.poll()
    output.register(STDOUT, 0)
    if not output.poll(0):  # an error is reported unasked
        return False
    os.dup2(os.open(os.devnull, os.O_WRONLY), STDOUT)
    return True


def _options(arguments: Sequence[str]) -> argparse.Namespace:
    """Return what the command line says and, where it says nothing, the configuration file."""
    parser = CommandParser(
        prog="tidegate-pipeline", description="Turn the landing files of gateways into tables."
    )
    parser.add_argument("--version", action=ShowVersion, nargs=0, help="show the version, and end")
    _add_config(parser)
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")
    for add in ADD:
        add(commands)
    by_name: dict[str, CommandParser] = dict(commands.choices)
    for command in by_name.values():
        _add_config(command)
    file = config_file(arguments)
    parser.set_defaults(spark={} if file is None else configure(by_name, file))
    return parser.parse_args(arguments)


def _add_config(parser: argparse.ArgumentParser) -> None:
    text = f"TOML with what options do not say; default: ${VARIABLE}"
    parser.add_argument("--config", type=Path, metavar="FILE", help=text)


def _table_errors() -> tuple[type[Exception], ...]:
    """Return the errors of the library that keeps tables, which many commands do not load."""
    library = sys.modules.get("deltalake.exceptions")
    return () if library is None else (library.DeltaError,)


def _failed(text: str, status: int) -> int:
    """Tell in one line why; deltalake's errors are pages with colours and a backtrace."""
    words = " ".join(_COLOUR.sub("", _BACKTRACE.split(text)[0]).split())
    print(f"tidegate-pipeline: {printable(words)}", file=sys.stderr)
    return status


if __name__ == "__main__":
    sys.exit(main())
