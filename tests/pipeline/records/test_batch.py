"""Batches that are none, or were cut: every one is refused with the reason."""

import contextlib
import zlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

import pipeline.records.batch as batch_module
from pipeline.records.batch import BatchError, read_batch
from tests.support.table import table

LINE = (
    b'{"epoch":"00a1b2c3d4","stream":"main","seq":1,"time":1763740000000,"topic":"a","text":"x"}\n'
)
WHOLE = b"\x01" + zlib.compress(LINE * 3)


def test_fields_that_were_left_out_have_their_values() -> None:
    records = read_batch(WHOLE, "barn", 17)
    assert (
        records
        == [
            {
                "gateway_id": "barn",
                "received": 17,
                "epoch": "00a1b2c3d4",
                "stream": "main",
                "seq": 1,
                "time": 1_763_740_000_000,
                "topic": "a",
                "payload": "eA==",
                "qos": 1,
                "retain": False,
                "resent": False,
                "content_type": None,
                "properties": [],
            }
        ]
        * 3
    )


@table(
    ("payload", "reason"),
    [
        (b"", "version missing"),
        (b"\x02" + zlib.compress(LINE), "version 2, not 1"),
        (b"\x01", "was cut"),
        (b"\x01hello", "not a zlib stream"),
        (WHOLE[:-3], "was cut"),
        (WHOLE + b"x", "something follows"),
        (b"\x01" + zlib.compress(LINE + b"{}"), "has no end"),
        (b"\x01" + zlib.compress(b"[1]\n"), "not an object"),
        (b"\x01" + zlib.compress(b"{\n"), "at character"),
        (b"\x01" + zlib.compress(b"\xff\n"), "not UTF-8"),
    ],
)
def test_what_is_no_batch_is_refused(payload: bytes, reason: str) -> None:
    with pytest.raises(BatchError, match=reason):
        read_batch(payload, "barn", 0)


def test_an_empty_batch_has_no_messages() -> None:
    assert read_batch(b"\x01" + zlib.compress(b""), "barn", 0) == []


def test_a_bomb_is_not_unpacked(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(batch_module, "BATCH_BYTES_MAX", 1000)
    with pytest.raises(BatchError, match="more than 1000 bytes"):
        read_batch(b"\x01" + zlib.compress(bytes(100_000)), "barn", 0)


@given(st.binary(max_size=60), st.booleans())
def test_any_bytes_give_records_or_a_reason(data: bytes, packed: bool) -> None:
    payload = b"\x01" + zlib.compress(data) if packed else data
    records: list[dict[str, object]] = []
    with contextlib.suppress(BatchError):  # anything else is a mistake of the reader's
        records = read_batch(payload, "barn", 0)
    assert all(record["gateway_id"] == "barn" for record in records)
