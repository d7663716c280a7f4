"""What gateways report of themselves, in their own files or in those of a collector."""

import re
from collections.abc import Iterator
from typing import BinaryIO, NamedTuple

from pipeline.landing.lines import read_lines

COLLECTED = "collected"
"""How the names of a collector's files begin. Their lines are of many gateways."""

_LINE = re.compile(rb'\{"gateway_id":"([A-Za-z0-9_-]{1,64})","report":(.*)\}\s*', re.DOTALL)


class Report(NamedTuple):
    """A line that a gateway reported, and where it stands."""

    gateway: str
    line: int
    content: bytes


def collected(gateway: str, content: bytes) -> bytes:
    """Return a gateway's line as one of a collector's file; it is JSON if the content is."""
    return b'{"gateway_id":"%s","report":%s}' % (gateway.encode(), content)


def reports(file: BinaryIO, name: str) -> Iterator[Report]:
    """Yield the lines of a file of the landing folder; blank ones are passed over.

    A line that names no gateway is of the one whose folder the file is in.
    """
    folder, _, rest = name.partition("/")
    by_many = rest.rpartition("/")[2].startswith(f"{COLLECTED}.")
    for line in read_lines(file):
        found = _LINE.fullmatch(line.content) if by_many else None
        if found is not None:
            yield Report(found[1].decode(), line.number, found[2])
        elif line.content.strip():
            yield Report(folder, line.number, line.content)
