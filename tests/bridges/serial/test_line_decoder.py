import pytest

from gateway.bridges.serial.serial_frames import LINE_MAX, LineDecoder
from gateway.counters import Counters


def test_lines_end_at_a_line_feed_with_or_without_carriage_return(counters: Counters) -> None:
    decoder = LineDecoder(counters.add)
    assert decoder.feed(b"one\r\n\r\n  \ntwo\nthr") == [b"one", b"two"]
    assert decoder.feed(b"ee\n") == [b"three"]


def test_lines_end_at_a_carriage_return_alone_and_keep_their_tabs(counters: Counters) -> None:
    decoder = LineDecoder(counters.add)
    assert decoder.feed(b"\xef\xbb\xbfone\rtwo\t\r\t \r\tthree\r") == [b"one", b"two\t", b"\tthree"]


def test_a_line_that_is_too_long_is_given_up_and_counted(counters: Counters) -> None:
    decoder = LineDecoder(counters.add)
    assert decoder.feed(b"x" * LINE_MAX + b"\n") == [b"x" * LINE_MAX]
    assert decoder.feed(b"x" * (LINE_MAX + 1) + b"\nnext\n") == [b"next"]
    assert counters.count("garbage_bytes") == LINE_MAX + 1


@pytest.mark.parametrize("start", [b"", b"\xff\xfe", b"\xfe\xff"])
@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
def test_utf_16_becomes_utf_8(counters: Counters, start: bytes, end: str) -> None:
    lines = ['{"temp":"21 °C"}', "Ωµ,1", "42"]
    encoding = "utf-16-be" if start == b"\xfe\xff" else "utf-16-le"
    data = start + (end.join((*lines, "", ""))).encode(encoding)
    decoder = LineDecoder(counters.add)
    found = [each.decode() for part in data for each in decoder.feed(bytes([part]))]
    assert found == lines
    assert decoder.feed(b"\0\0\n\x01\2\0\x02\x03\4\n") == [b"\x01\2\0\x02\x03\4"]
