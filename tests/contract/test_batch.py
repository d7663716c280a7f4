"""Batches from both ends: what the gateway packs, the pipeline reads, and the schema allows."""

import json
import zlib
from base64 import b64decode
from pathlib import Path
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from gateway.storage.outbox.row import OutboxRow
from gateway.uplink.batch import Batch, BatchLimits, batch_line
from pipeline.records.batch import read_batch
from pipeline.records.record import read_fields
from tests.support.disk.outbox_rows import ROWS
from tests.support.schemas import validator_of

LINE = validator_of("batch-message")
RECORD = validator_of("landing-record")


def _expected(row: OutboxRow, *, resent: bool, identity: bool) -> dict[str, Any]:
    return {
        "gateway_id": "barn",
        "received": 1_763_740_000_120,
        "epoch": row.epoch,
        "stream": row.stream,
        "seq": row.seq,
        "time": row.time,
        "topic": row.message.topic,
        "qos": row.message.qos,
        "retain": row.message.retain,
        "resent": resent,
        "content_type": row.message.content_type,
        "properties": [list(pair) for pair in row.message.user_properties],
        "clientid": row.message.client_id if identity else None,
        "username": row.message.username if identity else None,
        "response_topic": row.message.response_topic,
        "payload_format": row.message.payload_format,
    }


@given(
    rows=st.lists(st.tuples(ROWS, st.booleans()), min_size=1, max_size=8), identity=st.booleans()
)
def test_what_the_gateway_packs_the_pipeline_reads(
    rows: list[tuple[OutboxRow, bool]], identity: bool
) -> None:
    batch = Batch(BatchLimits(500, 64 * 1024, 0.2))
    for number, (row, resent) in enumerate(rows, 1):
        row.seq = number
        line = batch_line(row, identity=identity, resent=resent, now=row.time)
        LINE.validate(json.loads(line))
        batch.add(row, line, 0.0, paced=False)
    records = read_batch(batch.payload(), "barn", 1_763_740_000_120)
    assert len(records) == len(rows)
    for record, (row, resent) in zip(records, rows, strict=True):
        RECORD.validate(record)
        _, fault = read_fields(record)
        assert fault is None
        expected = _expected(row, resent=resent, identity=identity)
        assert {name: record.get(name) for name in expected} == expected
        assert b64decode(str(record["payload"])) == row.message.payload
        blob = record.get("correlation_data")
        assert (None if blob is None else b64decode(str(blob))) == row.message.correlation_data


def test_the_example_of_the_page_is_a_line() -> None:
    page = Path(__file__).parents[2] / "docs/understand/fleet-interface.md"
    text = page.read_text(encoding="utf-8")
    [example] = [line for line in text.splitlines() if line.startswith("{") and '"text"' in line]
    LINE.validate(json.loads(example))
    [record] = read_batch(b"\x01" + zlib.compress(example.encode() + b"\n"), "barn", 1)
    assert b64decode(str(record["payload"])) == b'{"value":21}'
