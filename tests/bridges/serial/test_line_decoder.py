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
