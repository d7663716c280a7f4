"""The command `tidegate`: runs what the command line asks for, and reports a mistake in a line."""

import os
import sys
from collections.abc import Callable, Sequence
from functools import partial

from gateway.config.errors import ConfigurationError
from gateway.errors import CANNOT_START, START_AGAIN, RestartError, TidegateError

READER_GONE = 141
"""What a shell reports for SIGPIPE."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command; return what it returns, or 2 with what is wrong on standard error.

    A gateway that wants to be started again ends with 3.
    """
    command = _command(sys.argv[1:] if arguments is None else arguments)
    try:
        return _run_command(command)
    except BrokenPipeError:  # as `| head` does; nothing more is written at the interpreter's end
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return READER_GONE
    except (ConfigurationError, TidegateError) as error:
        for line in str(error).splitlines():  # several where a file has several mistakes
            print(f"tidegate: {line}", file=sys.stderr)
        return START_AGAIN if isinstance(error, RestartError) else CANNOT_START
    except KeyboardInterrupt:
        return 130  # what a shell reports for SIGINT


def _run_command(command: Callable[[], int | None]) -> int:
    status = int(command() or 0)
    if sys.stdout is not None:  # it was closed before the start
        sys.stdout.flush()  # here a reader that has gone is no mistake, at the end it is
    return status


def _command(words: Sequence[str]) -> Callable[[], int | None]:
    """Return what does as the words say; end with status 2 where they are not understood.

    A gateway would hold argparse and the other commands, 1 MiB, for as long as it runs. So it is
    started without them where `run` has only pairs of options and values.
    """
    if words[:1] == ["run"]:
        from gateway.cli.run_arguments import simple_options

        given = simple_options(words[1:])
        if given is not None:
            from gateway.cli.run import run

            return partial(run, **given)
    from gateway.cli.commands import options_of

    options = options_of(words)
    return partial(options.command, options)
