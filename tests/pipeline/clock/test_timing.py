"""Which time holds for a message."""

import pyarrow as pa

from pipeline.clock.spans import Correction
from pipeline.clock.timing import timed
from pipeline.tables import on_disk
from pipeline.tables.columns import SILVER, arrow_schema

DAY = 86_400_000
NOW = 1_763_740_000_000
READ = NOW + 90 * DAY
"""When the pipeline read the records."""
Y21 = 1_609_459_200_000
"""2021-01-01, when the clock of an RP2040 begins."""
FRESH = 5_000
"""The clock of a board without one, seconds after its start."""
KNOWN = [
    Correction("barn", "e", "main", 10, 19, NOW - FRESH, 70),
    Correction("barn", "e", "main", 20, 29, 3 * DAY, 500),
    Correction("barn", "e", "slow", 1, 99, 2**62, 1),
]

# Stream, seq, time, received, the reading's own time; when, by what, how certain, how late.
CASES = [
    ("main", 1, NOW, NOW + 9, None, (NOW, "gateway", None, 9)),
    ("main", 1, NOW, NOW + 9, NOW - 5, (NOW - 5, "reading", None, 14)),
    ("main", 1, FRESH, NOW + 9, None, (NOW + 9, "received", None, 0)),
    ("main", 1, FRESH, None, None, (None, None, None, None)),
    ("main", 1, -(2**63), 2**53 - 1, 2**63 - 1, (None, None, None, None)),
    ("main", 1, FRESH, NOW, FRESH - 1, (NOW, "received", None, 0)),
    ("main", 10, FRESH + 7, NOW + DAY, None, (NOW + 7, "clock", 70, DAY - 7)),
    ("main", 19, FRESH + 7, NOW + DAY, FRESH + 2, (NOW + 2, "clock", 70, DAY - 2)),
    ("main", 19, FRESH + 7, NOW + DAY, NOW - 60_000, (NOW - 60_000, "reading", None, DAY + 60_000)),
    ("main", 20, NOW - 3 * DAY, NOW, None, (NOW, "clock", 500, 0)),
    ("main", 20, NOW - 3 * DAY, NOW, NOW - 3 * DAY - 1, (NOW - 1, "clock", 500, 1)),
    ("main", 20, NOW - 3 * DAY, NOW, NOW - 9, (NOW - 9, "reading", None, 9)),
    ("slow", 5, 2**62, NOW, None, (NOW, "received", None, 0)),
    ("slow", 5, NOW, NOW, None, (NOW, "gateway", None, 0)),
    # An event is not later than its receipt, and no clock of its gateway says when that was.
    ("main", 1, NOW, NOW, 4_060_000_000_000, (NOW, "gateway", None, 0)),
    ("main", 1, NOW + 30 * DAY, NOW, None, (NOW, "received", None, 0)),
    ("main", 1, NOW + 300_000, NOW, None, (NOW + 300_000, "gateway", None, -300_000)),
    ("main", 1, NOW + 300_001, NOW, None, (NOW, "received", None, 0)),
    ("main", 20, NOW - DAY, NOW, None, (NOW - DAY, "gateway", None, DAY)),
    ("main", 1, READ + DAY, READ + DAY, READ + DAY, (READ, "read", None, DAY)),
    ("main", 1, NOW, None, None, (NOW, "gateway", None, None)),
    ("main", 1, READ + DAY, None, None, (None, None, None, None)),
    # Boards whose clocks were never set begin in 2000, 2015 or 2021.
    ("main", 1, 946_684_800_000, NOW, None, (NOW, "received", None, 0)),
    ("main", 1, NOW, NOW, Y21 + 9 * DAY, (NOW, "gateway", None, 0)),
    ("main", 1, NOW, NOW, Y21 + 40 * DAY, (Y21 + 40 * DAY, "reading", None, NOW - Y21 - 40 * DAY)),
    ("main", 1, Y21 + 9, Y21 + DAY, None, (Y21 + 9, "gateway", None, DAY - 9)),
]  # fmt: skip


def test_the_time_that_holds() -> None:
    fields = ("gateway_id", "epoch", "stream", "seq", "time", "received", "reading_time")
    schema = pa.schema([arrow_schema(SILVER).field(name) for name in fields])
    rows = [dict(zip(fields, ("barn", "e", *case[:5]), strict=True)) for case in CASES]
    found = timed(pa.Table.from_pylist(rows, schema), KNOWN, READ)
    named = on_disk.with_ms(found).select(
        ["event_ms", "time_source", "time_uncertainty_ms", "lateness_ms"]
    )
    told = list(zip(*(column.to_pylist() for column in named.columns), strict=True))
    wrong = {
        n: (row, case[5])
        for n, (row, case) in enumerate(zip(told, CASES, strict=True))
        if row != case[5]
    }
    assert not wrong
    assert all(
        moment is None if day is None else moment.date() == day
        for moment, day in zip(
            found["event_time"].to_pylist(), found["event_date"].to_pylist(), strict=True
        )
    )
    assert timed(found, KNOWN, READ) == found
