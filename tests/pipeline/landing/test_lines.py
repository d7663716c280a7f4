import io

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline.landing.lines import Line, read_lines
from tests.support.table import table


def whole(number: int, content: bytes) -> Line:
    return Line(number, content, ended=True, too_long=False)


CASES = [
    (b"", []),
    (b"a\nb\n", [whole(1, b"a"), whole(2, b"b")]),
    (b"a\r\n\n", [whole(1, b"a\r"), whole(2, b"")]),
    (b"a\nb", [whole(1, b"a"), Line(2, b"b", ended=False, too_long=False)]),
    (b"12345678\n", [whole(1, b"12345678")]),
    (b"12345678", [Line(1, b"12345678", ended=False, too_long=False)]),
    (b"123456789\nb\n", [Line(1, b"12345678", ended=True, too_long=True), whole(2, b"b")]),
    (b"1234567890123456789", [Line(1, b"12345678", ended=False, too_long=True)]),
    (b"1" * 100 + b"\nb\n", [Line(1, b"1" * 8, ended=True, too_long=True), whole(2, b"b")]),
]


@table(("content", "lines"), CASES, ids=range(len(CASES)))
def test_lines_of_at_most_eight_bytes(content: bytes, lines: list[Line]) -> None:
    assert list(read_lines(io.BytesIO(content), limit=8)) == lines


@pytest.mark.uncovered
@given(st.lists(st.binary(max_size=30).filter(lambda part: b"\n" not in part)), st.integers(1, 20))
def test_every_line_is_seen_once_whatever_the_limit(parts: list[bytes], limit: int) -> None:
    content = b"".join(part + b"\n" for part in parts)
    lines = list(read_lines(io.BytesIO(content), limit))
    assert [line.content for line in lines] == [part[:limit] for part in parts]
    assert [line.too_long for line in lines] == [len(part) > limit for part in parts]
    assert [line.number for line in lines] == list(range(1, len(parts) + 1))
    assert all(line.ended for line in lines)
