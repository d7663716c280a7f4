"""The command line of `tidegate crashtest`, which only a checkout has."""

import argparse
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from gateway.errors import TidegateError

if TYPE_CHECKING:
    from gateway.cli.parser import Commands

CHECKOUT = Path(__file__).parents[2]
"""The folder that has `crashtest/` beside this package in a checkout."""

MISSING = (
    "the crash test is not part of the installed package: clone the repository of this version and"
    " run `make install` and `PYTHONPATH=. .venv/bin/tidegate crashtest` there, or `make crashtest`"
)

ROUNDS = 20
SECONDS = 0.5
LONGEST_SECONDS = 3600.0
MAXIMUM_ROUNDS = 100_000


def add_crashtest(commands: "Commands") -> None:
    """Add `crashtest` to the commands."""
    crashtest = commands.add_parser(
        "crashtest",
        help="kill gateways on this device, and check that nothing acknowledged is lost",
    )
    crashtest.add_argument(
        "--data",
        type=Path,
        default=Path("var"),
        metavar="DIR",
        help="folder on the device to be tested (./var); its data is not touched",
    )
    crashtest.add_argument(
        "--rounds",
        type=_rounds,
        default=ROUNDS,
        metavar="N",
        help=f"rounds, each with a kill ({ROUNDS})",
    )
    crashtest.add_argument(
        "--seconds",
        type=_seconds,
        default=SECONDS,
        metavar="S",
        help=f"seconds of publishing before a kill, at most ({SECONDS})",
    )
    crashtest.add_argument(
        "--seed", type=int, metavar="N", help="seed of an earlier run, to repeat its choices"
    )
    crashtest.set_defaults(command=_crashtest)


def _rounds(text: str) -> int:
    if not text.isascii() or not text.isdigit() or not 1 <= int(text) <= MAXIMUM_ROUNDS:
        raise argparse.ArgumentTypeError(f"{text!r} is not 1 to {MAXIMUM_ROUNDS}")
    return int(text)


def _seconds(text: str) -> float:
    try:
        seconds = float(text)
    except ValueError:
        seconds = -1.0
    if not 0 < seconds <= LONGEST_SECONDS:
        raise argparse.ArgumentTypeError(f"{text!r} is not above 0 and up to {LONGEST_SECONDS:.0f}")
    return seconds


def _crashtest(options: argparse.Namespace) -> int:
    sys.path.append(str(CHECKOUT))
    try:
        from crashtest.command import crashtest
    except ModuleNotFoundError as error:
        raise TidegateError(MISSING) from error
    finally:
        sys.path.remove(str(CHECKOUT))
    return crashtest(options.data, options.rounds, options.seconds, options.seed)
