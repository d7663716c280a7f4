"""The gateway's landing files against the schema, and against the pipeline's reader."""

import asyncio
import json
import tempfile
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from jsonschema import Draft202012Validator  # type: ignore[import-untyped]  # ships no types

from gateway.storage.outbox.row import OutboxRow
from pipeline.landing.landing_file import Row, parse_name, read_landing_file
from pipeline.tables.columns import RECORD
from tests.support.disk.outbox_rows import ROWS
from tests.support.disk.storage import open_store, until
from tests.support.fleet.uplinks import folder_files, running, uplink_settings
from tests.support.schemas import validator_of


@pytest.fixture(scope="module")
def validator() -> Draft202012Validator:
    return validator_of("landing-record")


def _number(rows: list[OutboxRow]) -> None:
    """Number the rows of each stream from 1, as the rules do."""
    last: dict[str, int] = {}
    for row in rows:
        row.seq = last[row.stream] = last.get(row.stream, 0) + 1


async def _land(rows: list[OutboxRow], folder: Path, *, identity: bool) -> None:
    store = await open_store(folder)
    settings = uplink_settings(directory=folder / "landing", identity=identity)
    async with running(store, settings) as uplink:
        await until(lambda: uplink.state == "connected")
        for row in rows:
            store.outbox.add(row)
        await store.settle()
    assert store.outbox.rows == 0
    await store.close()


def _read(folder: Path) -> list[Row]:
    """Return what the pipeline's reader makes of all files, the gateway's folder in their names."""
    rows: list[Row] = []
    for name in folder_files(folder / "barn"):
        with (folder / "barn" / name).open("rb") as file:
            rows.extend(read_landing_file(file, f"barn/{name}"))
    return rows


def _expected(row: OutboxRow, *, identity: bool) -> dict[str, Any]:
    return {
        "gateway_id": "barn",
        "epoch": row.epoch,
        "stream": row.stream,
        "seq": row.seq,
        "time": row.time,
        "topic": row.message.topic,
        "payload": row.message.payload,
        "qos": row.message.qos,
        "retain": row.message.retain,
        "resent": False,
        "content_type": row.message.content_type,
        "clientid": row.message.client_id if identity else None,
        "username": row.message.username if identity else None,
        "response_topic": row.message.response_topic,
        "correlation_data": row.message.correlation_data,
        "payload_format": row.message.payload_format,
    }


@given(rows=st.lists(ROWS, min_size=1, max_size=8), identity=st.booleans())
@settings(max_examples=40, deadline=None)
def test_what_the_gateway_lands_the_pipeline_reads(
    validator: Draft202012Validator, rows: list[OutboxRow], identity: bool
) -> None:
    _number(rows)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        asyncio.run(_land(rows, folder, identity=identity))
        for file in (folder / "landing" / "barn").iterdir():
            assert parse_name(f"barn/{file.name}") is not None
            for line in file.read_bytes().splitlines():
                validator.validate(json.loads(line))
        read = _read(folder / "landing")
    names = [name for name, _ in RECORD]
    found = {}
    for values in read:
        fields = dict(zip(names, values, strict=False))
        assert values[-3:] == (None, None, None), "no reason for quarantine"
        found[fields["stream"], fields["seq"]] = fields
    assert len(found) == len(read) == len(rows)
    for row in rows:
        fields = found[row.stream, row.seq]
        expected = _expected(row, identity=identity)
        assert {name: fields[name] for name in expected} == expected
        pairs = [tuple(pair.values()) for pair in fields["properties"]]  # type: ignore[attr-defined]  # a list of dictionaries
        assert pairs == list(row.message.user_properties)
