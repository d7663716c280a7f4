"""The clock records that the tables hold, as corrections of the numbers that they concern."""

import json

import pyarrow as pa

from pipeline.clock.record import ClockRecord, numbers_of
from pipeline.clock.spans import Correction, Epoch, corrections
from pipeline.tables import delta, islands, silver_numbers
from pipeline.tables.columns import CLOCKS, names
from pipeline.tables.delta import Where


def corrections_for(root: Where, found: pa.Table) -> list[Correction]:
    """Return the corrections of the streams that these islands name."""
    streams: dict[Epoch, set[str]] = {}
    for gateway, epoch, stream in islands.streams_of(found):
        streams.setdefault((gateway, epoch), set()).add(stream)
    records = read_records(root, set(streams))
    return [
        each
        for epoch, known in sorted(records.items())
        for each in corrections(epoch, known, streams[epoch])
    ]


def read_records(root: Where, epochs: set[Epoch]) -> dict[Epoch, list[ClockRecord]]:
    """Return the records of these epochs, in the order in which they came."""
    gateways = {gateway for gateway, _ in epochs}
    rows = delta.read_parts(root / "clocks", names(CLOCKS), "gateway_id", gateways)
    rows = rows.filter(silver_numbers.are_of(rows, epochs))
    order = [("batch", "ascending"), ("landing_file", "ascending"), ("line", "ascending")]
    found: dict[Epoch, list[ClockRecord]] = {}
    for row in rows.sort_by(order).to_pylist():
        numbers = numbers_of(json.loads(row["numbers"]))
        fields = {name: row[name] for name in ClockRecord._fields if name != "numbers"}
        record = ClockRecord(**fields, numbers=numbers)
        found.setdefault((row["gateway_id"], row["epoch"]), []).append(record)
    return found
