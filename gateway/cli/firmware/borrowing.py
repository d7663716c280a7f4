"""A port that a running gateway has open is borrowed from it, and given back."""

import argparse
import contextlib
import json
from collections.abc import Iterator
from pathlib import Path

from gateway.errors import TidegateError
from gateway.flashing.errors import BusyPortError, FlashingError
from gateway.flashing.port import Port

SECONDS = 15
"""In which the gateway stays away from its port; while we have it open it is locked."""


@contextlib.contextmanager
def borrowed(options: argparse.Namespace, path: str) -> Iterator[Port]:
    """Give a port for which the gateway is asked where it has it open."""
    asked = False

    def borrow() -> None:
        nonlocal asked
        asked = True
        _ask(options, path, SECONDS)

    try:
        yield Port(path, borrow)
    finally:
        if asked:
            with contextlib.suppress(FlashingError):  # the gateway comes back by itself, too
                _ask(options, path, 0)


def _ask(options: argparse.Namespace, path: str, seconds: int) -> None:
    from gateway.cli.control_request import ask_gateway
    from gateway.cli.local_broker import LocalBroker

    request = json.dumps({"port": str(Path(path).resolve()), "seconds": seconds})
    try:
        ask_gateway(LocalBroker.of(options), "port", request, "does not let go of it")
    except TidegateError as error:
        raise BusyPortError(f"{path}: another program has it open, and {error}") from error
