"""The command `tidegate`: runs a command, and reports a mistake in one line."""

import os
import sys
from collections.abc import Callable, Sequence
from functools import partial

from gateway.config.errors import ConfigurationError
from gateway.errors import CANNOT_START, START_AGAIN, RestartError, TidegateError

READER_GONE = 141
"""A shell's exit status for SIGPIPE."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command; return its status, or 2 with the fault on standard error.

    A gateway that needs another start ends with 3.
    """
    command = _command(sys.argv[1:] if arguments is None else arguments)
    try:
        return _run_command(command)
    except BrokenPipeError:  # as `| head` does; nothing more is written at the interpreter's end
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return READER_GONE
    except (ConfigurationError, TidegateError) as error:
        for line in str(error).splitlines():  # several if a file has several mistakes
            print(f"tidegate: {line}", file=sys.stderr)
        return START_AGAIN if isinstance(error, RestartError) else CANNOT_START
    except KeyboardInterrupt:
        return 130  # a shell's exit status for SIGINT


def _run_command(command: Callable[[], int | None]) -> int:
    status = int(command() or 0)
    if sys.stdout is not None:  # it was closed before the start
        # here a reader that has gone is no error, at the interpreter's end it is
        sys.stdout.flush()
    return status


def _command(words: Sequence[str]) -> Callable[[], int | None]:
    """Return the function for the words; end with status 2 if they are invalid.

    A gateway would hold argparse and the other commands, 1 MiB, as long as it runs. So it is
    started without them if `run` has only pairs of options and values.
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
