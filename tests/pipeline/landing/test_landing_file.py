import io
import json

from hypothesis import given
from hypothesis import strategies as st

from pipeline.landing.landing_file import (
    RAW_BYTES_MAX,
    LandingName,
    lines_of,
    parse_name,
    read_landing_file,
)
from pipeline.records import reasons
from pipeline.tables.columns import QUARANTINE, names
from tests.support.disk.landing_files import EPOCH, GATEWAY, name_for, record, text_of
from tests.support.table import table

THREE = [record(seq) for seq in (1, 2, 3)]


def rows_of(content: bytes, name: str, limit: int = 1_000_000) -> list[dict[str, object]]:
    rows = read_landing_file(io.BytesIO(content), name, limit)
    return [dict(zip(names(QUARANTINE), row, strict=True)) for row in rows]


def seqs_and_reasons(content: bytes, name: str) -> tuple[list[object], list[object]]:
    rows = rows_of(content, name)
    return (
        [row["seq"] for row in rows if row["reason"] is None],
        [row["reason"] for row in rows if row["reason"] is not None],
    )


def path_for(lines: int) -> str:
    return f"{GATEWAY}/{name_for(lines)}"


NAMES = [
    ("barn/00a1b2c3d4.main.1-1000.998.jsonl", ("barn", "00a1b2c3d4", "main", 1, 1000, 998)),
    ("b_-9/00A1B2C3D4.a-b_c.7-7.1.jsonl", ("b_-9", "00A1B2C3D4", "a-b_c", 7, 7, 1)),
    ("00a1b2c3d4.main.1-1000.998.jsonl", None),
    ("barn/x/00a1b2c3d4.main.1-1000.998.jsonl", None),
    ("barn/00a1b2c3d4.main.1-1000.jsonl", None),
    ("barn/00a1b2c3.main.1-1000.998.jsonl", None),
    ("barn/00a1b2c3d4.ma.in.1-1000.998.jsonl", None),
    ("barn/00a1b2c3d4.main.1-1000.998.jsonl\n", None),
    ("barn/00a1b2c3d4.main.1-1000.998.jsonl.part", None),
    ("-barn/00a1b2c3d4.main.1-1000.998.jsonl", None),
    ("barn/notes.jsonl", None),
]


@table(("name", "parts"), NAMES)
def test_a_name_says_where_the_lines_belong(name: str, parts: tuple[object, ...] | None) -> None:
    assert parse_name(name) == (None if parts is None else LandingName(*parts))  # type: ignore[arg-type]  # the table's columns have different types
    assert lines_of(name) == (0 if parts is None else parts[-1])


def test_the_name_of_a_collectors_file_of_lines_says_how_many() -> None:
    assert lines_of("20251121/c-0a1b2c3d-0000000001.7.jsonl") == 7


def test_a_whole_file_gives_its_records_with_their_place() -> None:
    rows = rows_of(text_of(THREE), path_for(3))
    assert [(row["seq"], row["landing_file"], row["line"]) for row in rows] == [
        (1, path_for(3), 1),
        (2, path_for(3), 2),
        (3, path_for(3), 3),
    ]
    assert all(row["reason"] is None and row["raw"] is None for row in rows)


ENDS = [
    # the last line, what of it is there; seqs; reasons
    (b"", [1, 2], [reasons.TRUNCATED]),
    (b"{", [1, 2], [reasons.TRUNCATED]),
    (json.dumps(record(3)).encode()[:-1], [1, 2], [reasons.TRUNCATED]),
    (b"\xff\xfe", [1, 2], [reasons.TRUNCATED]),
    (b"12", [1, 2], [reasons.TRUNCATED]),
    (json.dumps(record(3)).encode(), [1, 2, 3], []),
    (json.dumps(record(3)).encode() + b"\r\n", [1, 2, 3], []),
    (b"not a record\n", [1, 2], [reasons.NOT_JSON]),
    (b"\n", [1, 2], [reasons.TRUNCATED]),
    (b"{}", [1, 2], [reasons.KEY_INCOMPLETE]),
]


@table(("end", "seqs", "faults"), ENDS, ids=range(len(ENDS)))
def test_the_name_says_how_many_lines_there_must_be(
    end: bytes, seqs: list[object], faults: list[object]
) -> None:
    content = text_of(THREE[:2]) + end
    assert seqs_and_reasons(content, path_for(3)) == (seqs, faults)


@given(st.data())
def test_a_file_cut_anywhere_gives_its_whole_lines(data: st.DataObject) -> None:
    content = text_of(THREE)
    cut = content[: data.draw(st.integers(0, len(content) - 2))]
    whole = cut.count(b"\n") + (cut != b"" and content[len(cut) : len(cut) + 1] == b"\n")
    seqs, faults = seqs_and_reasons(cut, path_for(3))
    assert seqs == [1, 2, 3][:whole]
    assert faults == [reasons.TRUNCATED]


def test_truncated_carries_the_half_line_and_what_the_name_says() -> None:
    rows = rows_of(text_of(THREE[:1]) + b'{"gateway', path_for(3))
    row = rows[-1]
    assert row["reason"] == reasons.TRUNCATED
    assert row["detail"] == "1 whole lines, its name says 3"
    assert (row["gateway_id"], row["epoch"], row["stream"]) == (GATEWAY, EPOCH, "main")
    assert (row["seq"], row["line"], row["raw"]) == (None, 2, b'{"gateway')


def test_more_lines_than_named_are_all_read_and_told() -> None:
    assert seqs_and_reasons(text_of(THREE), path_for(2)) == ([1, 2, 3], [reasons.SURPLUS_LINES])
    half = text_of(THREE) + b"{"
    assert seqs_and_reasons(half, path_for(2)) == ([1, 2, 3], [reasons.TRUNCATED])


def test_another_name_is_told_and_its_lines_are_read() -> None:
    name = f"{GATEWAY}/notes.jsonl"
    assert seqs_and_reasons(text_of(THREE), name) == ([1, 2, 3], [reasons.FILE_NAME])
    half = text_of(THREE) + b"{"
    assert seqs_and_reasons(half, name) == ([1, 2, 3], [reasons.FILE_NAME, reasons.TRUNCATED])
    assert seqs_and_reasons(text_of(THREE), "notes.jsonl") == ([1, 2, 3], [reasons.FILE_NAME])


def test_records_of_other_gateways_keep_their_own_key_and_are_told_once() -> None:
    entries = [record(1), record(2, gateway_id="shed"), record(3, gateway_id="mill")]
    rows = rows_of(text_of(entries), path_for(3))
    assert [row["gateway_id"] for row in rows] == ["barn", "shed", "mill", "barn"]
    assert [row["reason"] for row in rows] == [None, None, None, reasons.FOLDER_MISMATCH]
    assert rows[-1]["detail"] == "2 records of other gateways, the first of shed"


def test_blank_lines_do_not_count_but_are_numbered() -> None:
    rows = rows_of(b"\n" + text_of(THREE[:1]) + b" \r\n" + text_of(THREE[1:]), path_for(3))
    assert [row["line"] for row in rows] == [2, 4, 5]
    assert seqs_and_reasons(b"\n\n", path_for(1)) == ([], [reasons.TRUNCATED])
    assert rows_of(b"", path_for(0)) == []


def test_a_faulty_line_keeps_its_bytes_up_to_a_bound() -> None:
    line = b"{" * (RAW_BYTES_MAX + 1)
    (row,) = rows_of(line + b"\n", path_for(1))
    assert row["reason"] == reasons.NOT_JSON
    assert row["raw"] == line[:-1]


def test_a_line_beyond_the_limit_does_not_hide_the_next() -> None:
    long = record(1, content=b"x" * 2_000)
    rows = rows_of(text_of([long, record(2)]), path_for(2), limit=1_000)
    assert [(row["seq"], row["reason"]) for row in rows] == [
        (None, reasons.LINE_TOO_LONG),
        (2, None),
    ]
    assert rows[0]["detail"] == "the line is longer than 1000 bytes"


def test_a_line_of_several_megabytes_is_a_record() -> None:
    (row,) = rows_of(text_of([record(1, content=b"x" * 6_000_000)]), path_for(1), 64_000_000)
    assert row["reason"] is None
    assert row["payload"] == b"x" * 6_000_000
