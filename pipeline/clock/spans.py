"""Clock records to ranges of numbers, each with the correction that holds."""

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from pipeline.clock.record import INT64, ClockRecord

Epoch = tuple[str, str]
"""Gateway and epoch."""


class Correction(NamedTuple):
    """What is to be added to `time` of the numbers `first` to `last`, closed, of a stream."""

    gateway_id: str
    epoch: str
    stream: str
    first: int
    last: int
    offset_ms: int
    uncertainty_ms: int


def corrections(
    epoch: Epoch, records: Iterable[ClockRecord], streams: Iterable[str]
) -> list[Correction]:
    """Return the corrections of an epoch, without overlap within a stream.

    `records` stand in the order in which they came. Of several of a span the one with the
    smallest uncertainty holds, and the later of equal ones. A span whose correction nobody
    knows (`uncertainty_ms` is null) has none.
    """
    spans: dict[tuple[str, int, int], list[ClockRecord]] = {}
    for record in records:
        spans.setdefault((record.boot, record.uptime_ms, record.begins), []).append(record)
    ordered = sorted(spans.values(), key=lambda span: span[0].uptime_ms)
    named = {stream for span in ordered for record in span for stream in record.numbers}
    return [
        Correction(*epoch, stream, first, last, best.offset_ms, best.uncertainty_ms)
        for stream in sorted({*streams, *named})
        for first, last, best in _of_stream(stream, ordered)
        if best.uncertainty_ms is not None
    ]


def _of_stream(
    stream: str, spans: Sequence[Sequence[ClockRecord]]
) -> list[tuple[int, int, ClockRecord]]:
    """Return first, last and best record of the spans in which the stream had numbers."""
    found = []
    for span in spans:
        extent = next((record for record in reversed(span) if record.ends is not None), span[-1])
        running = extent.ends is None
        numbers = extent.numbers.get(stream, (1, None) if running else None)
        if numbers is not None:
            found.append((numbers[0], numbers[1], _best(span)))
    ranges = []
    for index, (first, last, best) in enumerate(found):
        following = min((low for low, _, _ in found[index + 1 :] if low >= first), default=None)
        end = INT64.stop - 1 if last is None else last
        end = end if following is None else min(end, following - 1)
        if first <= end:
            ranges.append((first, end, best))
    return ranges


def _best(span: Sequence[ClockRecord]) -> ClockRecord:
    known = [record for record in span if record.uncertainty_ms is not None]
    if not known:
        return span[-1]
    return min(reversed(known), key=lambda record: record.uncertainty_ms or 0)
