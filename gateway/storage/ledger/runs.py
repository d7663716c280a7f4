"""Rows that end together as runs of numbers that follow each other."""

from collections.abc import Iterable, Iterator

from gateway.storage.outbox.outbox_row import OutboxRow

Run = tuple[str, str, int, int]
"""Epoch, stream, first and last number."""


def runs_of(rows: Iterable[OutboxRow]) -> Iterator[Run]:
    """Yield the runs in which the numbers of `rows` come, those of each stream in their order.

    Rows of several streams that take turns do not break each other's runs.
    """
    runs: dict[tuple[str, str], tuple[int, int]] = {}
    for row in rows:
        key = (row.epoch, row.stream)
        first, last = runs.get(key, (row.seq, row.seq - 1))
        if row.seq != last + 1:
            yield (*key, first, last)
            first = row.seq
        runs[key] = (first, row.seq)
    for key, (first, last) in runs.items():
        yield (*key, first, last)
