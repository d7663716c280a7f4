import json
from base64 import b64encode
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline.landing.landing_parquet import SCHEMA, count_rows, read_landing_parquet
from pipeline.place import place_of
from pipeline.records import reasons
from pipeline.records.record import read_record
from pipeline.tables.columns import QUARANTINE, RECORD, arrow_schema
from tests.support.disk.landing_files import EPOCH, TIME
from tests.support.table import table

ROW: dict[str, Any] = {
    "gateway_id": "barn", "epoch": EPOCH, "stream": "main", "seq": 1, "time": TIME,
    "received": TIME, "topic": "a", "payload": b"\xff", "qos": 1, "retain": False, "resent": False,
    "properties": [{"name": "site", "value": "A"}],
}  # fmt: skip
EDGES: dict[str, st.SearchStrategy[Any]] = {
    "gateway_id": st.sampled_from([None, "", "barn", "-a", "a" * 65, "a\n", "\u00e4"]),
    "epoch": st.sampled_from([None, EPOCH, EPOCH.upper(), "x", EPOCH + "\n"]),
    "stream": st.sampled_from([None, "main", "", "a b", "a" * 17]),
    "seq": st.sampled_from([None, 0, 1, -1, 2**63 - 1]),
    "time": st.sampled_from([None, 0, -(2**63)]),
    "received": st.sampled_from([None, 0, -1, 2**53 - 1, 2**53]),
    "topic": st.sampled_from([None, "", "a", "\n", "\u00e4"]),
    "payload": st.sampled_from([None, b"", b"x"]),
    "qos": st.sampled_from([None, 0, 2, 3, -1]),
    "message_expiry": st.sampled_from([None, 0, -1, 2**32 - 1, 2**32]),
    "payload_format": st.sampled_from([None, 0, 1, 2]),
}


def write(path: Path, rows: list[dict[str, Any]]) -> Path:
    pq.write_table(pa.Table.from_pylist(rows, arrow_schema(RECORD)), path)
    return path


def read(path: Path) -> list[dict[str, Any]]:
    batches = list(read_landing_parquet(place_of(path.parent), path.name))
    assert all(batch.schema == SCHEMA for batch in batches)
    return [row for batch in batches for row in batch.to_pylist()]


@given(st.lists(st.fixed_dictionaries({}, optional=EDGES), max_size=6))
def test_a_row_is_a_record_exactly_if_its_line_would_be(
    tmp_path_factory: Any, changes: list[dict[str, Any]]
) -> None:
    path = tmp_path_factory.mktemp("parquet") / "a.parquet"
    rows = [dict.fromkeys(arrow_schema(RECORD).names) | ROW | change for change in changes]
    found = {row["line"]: row for row in read(write(path, rows))}
    for line, row in enumerate(rows, 1):
        as_json = {name: value for name, value in row.items() if value is not None}
        if "payload" in as_json:
            as_json["payload"] = b64encode(as_json["payload"]).decode()
        as_json["properties"] = [["site", "A"]]
        values, fault = read_record(json.dumps(as_json).encode())
        assert found[line]["reason"] == (fault and fault.reason)
        assert tuple(found[line][name] for name, _ in RECORD) == values
    assert len(found) == len(rows)


def test_a_file_of_an_earlier_or_foreign_writer(tmp_path: Path) -> None:
    path = tmp_path / "a.parquet"
    few = {
        name: ROW[name]
        for name in ("gateway_id", "epoch", "stream", "seq", "time", "topic", "payload")
    }
    pq.write_table(pa.Table.from_pylist([few]), path)
    (row,) = read(path)
    assert (row["reason"], row["qos"], row["payload"]) == (None, None, b"\xff")
    pq.write_table(pa.table({"seq": ["one"], "gateway_id": [b"\xff"]}), path)
    assert [row["reason"] for row in read(path)] == [reasons.FILE_UNREADABLE]


FOREIGN: dict[str, list[Any]] = {
    "time": [datetime(2025, 11, 21, tzinfo=UTC), 1.0, "1763740000000", True],
    "received": [datetime(2025, 11, 21, tzinfo=UTC), 1.0],
    "seq": [1.0, "1", b"1", True, [1]],
    "epoch": [10, b"00a1b2c3d4"],
    "gateway_id": [7, b"barn"],
    "payload": ["text", 21.5, {"value": 1}],
    "retain": [0, "true"],
    "properties": ["a", {"a": "b"}, ["a"], [{"name": 1, "value": 2}]],
}
"""Values whose type is that of another column; each was taken for the record's by a cast."""


@table(("name", "value"), [(n, v) for n, each in FOREIGN.items() for v in each])
def test_a_column_of_another_type_is_refused(tmp_path: Path, name: str, value: object) -> None:
    path = tmp_path / "a.parquet"
    pq.write_table(pa.Table.from_pylist([ROW | {name: value}]), path)
    (row,) = read(path)
    assert row["reason"] == reasons.FILE_UNREADABLE
    assert f"column {name} is " in row["detail"]
    assert row["landing_file"] == path.name


def test_types_that_say_the_same_are_taken(tmp_path: Path) -> None:
    wide = {
        "gateway_id": pa.array(["barn"]).dictionary_encode(),
        "epoch": pa.array([EPOCH], pa.large_string()),
        "stream": pa.array(["main"]),
        "seq": pa.array([7], pa.uint32()),
        "time": pa.array([TIME]),
        "topic": pa.array(["a"]),
        "payload": pa.array([b"x"], pa.large_binary()),
        "qos": pa.array([1], pa.int64()),
        "username": pa.nulls(1),
    }
    pq.write_table(pa.table(wide), tmp_path / "a.parquet")
    (row,) = read(tmp_path / "a.parquet")
    assert (row["reason"], row["gateway_id"], row["seq"], row["qos"]) == (None, "barn", 7, 1)


@pytest.mark.uncovered
def test_damage_anywhere_is_told_and_raises_nothing(tmp_path: Path) -> None:
    """Arrow has an error of another kind for each place, and none for a byte in a value."""
    rows = [ROW | {"seq": seq, "payload": str(seq).encode()} for seq in range(1, 100)]
    path = tmp_path / "a.parquet"
    table = pa.Table.from_pylist(rows, arrow_schema(RECORD))
    pq.write_table(table, path, compression="zstd", write_page_checksum=True)
    whole = path.read_bytes()
    whole_rows = read(path)
    silent = []
    for place in range(0, len(whole), 7):
        path.write_bytes(whole[:place] + bytes([whole[place] ^ 0x55]) + whole[place + 1 :])
        found = read(path)
        if found != whole_rows and reasons.FILE_UNREADABLE not in {row["reason"] for row in found}:
            silent.append(place)
    tried = len(range(0, len(whole), 7))
    assert 0 < len(silent) < tried * 0.1  # headers and the footer have no checksum
    path.write_bytes(b"PAR1" + bytes(100) + b"PAR1")
    assert [row["reason"] for row in read(path)] == [reasons.FILE_UNREADABLE]


def test_a_file_that_the_system_cannot_read_is_no_damaged_file(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        read(tmp_path / "gone.parquet")
    with pytest.raises(FileNotFoundError):
        count_rows(place_of(tmp_path), "gone.parquet")


def test_a_file_that_was_cut_says_so(tmp_path: Path) -> None:
    path = write(tmp_path / "a.parquet", [ROW, ROW])
    assert count_rows(place_of(tmp_path), path.name) == 2
    path.write_bytes(path.read_bytes()[:-20])
    assert count_rows(place_of(tmp_path), path.name) == 0
    (row,) = read(path)
    assert (row["reason"], row["landing_file"]) == (reasons.FILE_UNREADABLE, path.name)
    assert set(row) == {name for name, _ in QUARANTINE}
