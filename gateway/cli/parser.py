"""The command line's parser: one line for a mistake, and as wide as the terminal."""

import argparse
import os
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn, TypeAlias

from gateway.errors import CANNOT_START

if TYPE_CHECKING:
    Commands: TypeAlias = "argparse._SubParsersAction[Parser]"  # noqa: SLF001 - it has no public name

LOCAL_BROKER = "mqtt://127.0.0.1:1883"
"""The default URL if no gateway of this machine has a socket."""

URL_HELP = f"the gateway (by default this machine's, by its socket or {LOCAL_BROKER})"
DEFAULT_COLUMNS = 80


class Formatter(argparse.HelpFormatter):
    """Finds the terminal's width without shutil, which would import three compressors.

    argparse makes one for each argument, even if nobody requests help.
    """

    def __init__(self, prog: str) -> None:
        super().__init__(prog, width=columns() - 2)


def columns() -> int:
    """Return the width of the terminal, or COLUMNS; 80 without either."""
    given = os.environ.get("COLUMNS", "")
    if given.isdecimal() and int(given):
        return int(given)
    try:
        return os.get_terminal_size().columns or DEFAULT_COLUMNS
    except OSError:
        return DEFAULT_COLUMNS


class Parser(argparse.ArgumentParser):
    """Reports a mistake in one line, like every other."""

    def __init__(self, **settings: Any) -> None:
        super().__init__(formatter_class=Formatter, **settings)

    def error(self, message: str) -> NoReturn:
        """Print the mistake without the usage and exit with 2."""
        self.exit(CANNOT_START, f"{self.prog}: {message}\n")


def add_broker(parser: argparse.ArgumentParser) -> None:
    """Add the options for the gateway's address and the credentials, for `LocalBroker.of`."""
    parser.add_argument("--url", metavar="URL", help=URL_HELP)
    add_user_options(parser)


def add_user_options(parser: argparse.ArgumentParser) -> None:
    """Add the options for the credentials."""
    parser.add_argument("--username", metavar="NAME", help="user name")
    parser.add_argument(
        "--password-file",
        type=Path,
        metavar="FILE",
        help="file with the password in its first line",
    )
    parser.add_argument(
        "--ca-file", type=Path, metavar="FILE", help="file of trusted authorities for mqtts://"
    )
    parser.add_argument(
        "--cert", type=Path, metavar="FILE", help="file of the client certificate for mqtts://"
    )
    parser.add_argument(
        "--key", type=Path, metavar="FILE", help="file of its private key, if that is another one"
    )
