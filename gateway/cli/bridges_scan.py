"""`tidegate bridges scan`: searches devices of a kind of bridge, and prints configuration."""

import argparse
import asyncio
import json
import sys
from collections.abc import Iterator, Sequence

from gateway.bridges.kind import FoundTable, ScanOptions
from gateway.cli.bridges import load
from gateway.config.bridges import bridge_kinds
from gateway.errors import TidegateError
from gateway.extras import how_to_install

NOTHING = 1
"""The exit status if nothing is found."""


def command_scan(words: Sequence[str], options: argparse.Namespace) -> int:
    """Print the configuration for what is found; raise TidegateError for a kind that cannot scan.

    Progress is printed to standard error. Returns 0 if something is found, else 1.
    """
    if not words:
        raise TidegateError(f"scan needs a kind of bridge: {', '.join(_kinds())}")
    kind = load(words[0])
    if kind.scan is None:
        raise TidegateError(f"{kind.name} cannot scan; these can: {', '.join(_kinds())}")
    try:
        found = asyncio.run(
            kind.scan(
                ScanOptions(
                    lambda text: print(text, file=sys.stderr, flush=True),
                    tuple(words[1:]),
                    options.seconds,
                    _devices(options.devices),
                )
            )
        )
    except ImportError as failure:
        how = how_to_install(kind.extra)
        raise TidegateError(
            f"{kind.name} needs {failure.name or failure}, which is not installed: {how}"
        ) from failure
    print("\n".join(lines(found)))
    return 0 if found else NOTHING


def _kinds() -> list[str]:
    return [name for name in bridge_kinds() if load(name).scan is not None]


def _devices(text: str | None) -> range | None:
    """Return the identifiers of `1-32` or `7`."""
    if text is None:
        return None
    first, _, last = text.partition("-")
    last = last or first
    if first.isdecimal() and last.isdecimal() and 0 <= int(first) <= int(last) <= 255:
        return range(int(first), int(last) + 1)
    raise TidegateError(f"--devices {text}: a number or a range such as 1-32, of 0 to 255")


def lines(found: Sequence[FoundTable]) -> Iterator[str]:
    """Yield tables as TOML, each below its comments."""
    for each in found:
        yield from (f"# {comment}" for comment in each.comments)
        yield f"[[{each.name}]]"
        for key, value in each.values.items():
            yield f"{key} = {json.dumps(value, ensure_ascii=False)}"
        yield ""
