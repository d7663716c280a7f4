from collections.abc import Sequence
from datetime import UTC, date, datetime
from hashlib import sha256

import pyarrow as pa

from pipeline.batches.judge import LEFT_OUT
from pipeline.batches.silver import DECODED, Judged, conflicts, decoded, firsts, silver
from pipeline.records import reasons
from pipeline.records.payloads import Payloads
from pipeline.tables.columns import BATCH as COLUMN
from pipeline.tables.columns import BRONZE, SILVER, arrow_schema, names
from pipeline.tables.islands import Island
from tests.support.disk.landing_files import EPOCH, GATEWAY, TIME, reading

BATCH = 7
SEEN = (("main", 7), ("other", 1))
"""Streams, and the numbers from which on silver had theirs."""


def bronze_rows(rows: Sequence[tuple[int, int | None, bytes]]) -> pa.RecordBatch:
    """Return bronze's rows of number, seconds after TIME when it was received, and payload."""
    nothing = dict.fromkeys(names(BRONZE))
    same = {"gateway_id": GATEWAY, "epoch": EPOCH, "stream": "main", "time": TIME}
    same |= {"topic": "sensors/n1/temperature", "landing_file": "a", "batch": BATCH}
    fields = [
        nothing
        | same
        | {
            "seq": seq,
            "received": None if received is None else TIME + received * 1000,
            "payload": content,
            "line": line,
        }
        for line, (seq, received, content) in enumerate(rows, 1)
    ]
    return pa.RecordBatch.from_pylist(fields, arrow_schema((*BRONZE, COLUMN)))


def decoded_rows(rows: Sequence[tuple[int, int | None, bytes]]) -> pa.Table:
    return pa.Table.from_batches([decoded(bronze_rows(rows), Payloads(()))])


def test_rows_that_are_left_out_go_to_the_quarantine_if_they_conflict() -> None:
    rows = [(1, 5, reading(1)), (2, 5, reading(2)), (2, 6, reading(2)), (2, 7, reading(3))]
    rows.append((9, 5, reading(9)))
    out = [("a", 3, b"", "a", 2, False), ("a", 4, b"", "b", 9, True)]
    losing = pa.Table.from_pylist(
        [dict(zip(LEFT_OUT.names, each, strict=True)) for each in out], LEFT_OUT
    )
    seen = [Island(GATEWAY, EPOCH, stream, first, 9, None, None) for stream, first in SEEN]
    kept = firsts(decoded_rows(rows), Judged(losing, seen, (), 0))
    assert (kept["seq"].to_pylist(), kept["line"].to_pylist()) == ([1, 2], [1, 2])
    bronze = pa.Table.from_batches([bronze_rows(rows)])
    (reported,) = conflicts(bronze, losing.filter(losing["conflicts"])).to_pylist()
    assert (reported["seq"], reported["line"], reported["payload"]) == (2, 4, reading(3))
    assert (reported["reason"], reported["detail"], reported["raw"], reported["batch"]) == (
        reasons.KEY_CONFLICT,
        "the key came first in b, line 9",
        None,
        BATCH,
    )


def test_silver_has_all_columns_typed_in_the_order_of_dates() -> None:
    payload = reading(21.5, unit="°C", quality="good", time=TIME - 20 * 3_600_000)
    rows = [(2, None, b"\xff"), (1, 1, payload)]
    frame = silver(decoded_rows(rows), [], TIME + 86_400_000)
    assert frame.schema == arrow_schema(SILVER)
    first, second = frame.to_pylist()
    assert first == {
        "gateway_id": GATEWAY,
        "epoch": EPOCH,
        "stream": "main",
        "seq": 1,
        "part": 0,
        "event_time": datetime(2025, 11, 20, 19, 46, 40, tzinfo=UTC),
        "time_source": "reading",
        "time_uncertainty_ms": None,
        "time": TIME,
        "received": TIME + 1000,
        "reading_time": TIME - 20 * 3_600_000,
        "node": "n1",
        "quantity": "temperature",
        "instance": None,
        "topic": "sensors/n1/temperature",
        "value": 21.5,
        "value_text": None,
        "unit": "°C",
        "value_exact": None,
        "quality": "good",
        "lateness_ms": 20 * 3_600_000 + 1000,
        "resent": None,
        "bytes": len(payload),
        "decode_error": None,
        "digest": sha256(payload).digest()[:8],
        "landing_file": "a",
        "line": 2,
        "batch": BATCH,
        "event_date": date(2025, 11, 20),
    }
    assert second["event_date"] == date(2025, 11, 21)
    assert second["decode_error"] == "not UTF-8 at byte 1"
    assert (second["lateness_ms"], second["node"], second["value_text"]) == (None, None, None)


def test_decoded_fills_the_schema_without_spark() -> None:
    messages: list[dict[str, object]] = [
        {"seq": 1, "received": TIME + 5, "topic": "sensors/n1/a", "payload": reading("on")},
        {"seq": 2, "received": None, "topic": "else", "payload": b"\xff"},
    ]
    kinds = arrow_schema((*BRONZE, COLUMN))
    batch = pa.RecordBatch.from_pylist(
        [
            {"gateway_id": GATEWAY, "epoch": EPOCH, "stream": "main", "time": TIME} | fields
            for fields in messages
        ],
        kinds,
    )
    rows = decoded(batch, Payloads(()))
    assert rows.schema == arrow_schema(DECODED)
    assert rows.column("value_text").to_pylist() == ["on", None]
    assert decoded(batch.slice(0, 0), Payloads(())).num_rows == 0
