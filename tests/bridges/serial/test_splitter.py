"""Pieces come whole in any chunking, and what never ends is given up within its bound."""

from hypothesis import given
from hypothesis import strategies as st

from gateway.bridges.serial.serial_frames import Splitter
from gateway.counters import Counters

LIMIT = 8


def _fed(chunks: list[bytes]) -> tuple[list[bytes], int]:
    counters = Counters()
    splitter = Splitter(b"\0", LIMIT, counters.add)
    pieces = [piece for chunk in chunks for piece in splitter.feed(chunk)]
    return pieces, counters.count("garbage_bytes")


def test_pieces_end_at_the_delimiter_and_empty_ones_are_left_out() -> None:
    assert _fed([b"\0\0ab\0cd"]) == ([b"ab"], 0)


def test_a_piece_may_be_as_long_as_the_limit() -> None:
    assert _fed([b"12345678\0"]) == ([b"12345678"], 0)


def test_what_is_longer_is_skipped_to_its_end() -> None:
    assert _fed([b"12345", b"6789", b"xyz\0ab\0"]) == ([b"ab"], 12)


def test_what_never_ends_is_not_kept() -> None:
    counters = Counters()
    splitter = Splitter(b"\0", LIMIT, counters.add)
    for _ in range(1000):
        splitter.feed(b"noise")
    assert len(splitter._pending) <= LIMIT
    assert counters.count("garbage_bytes") == 5000


@given(st.lists(st.binary(max_size=20)))
def test_the_chunking_changes_nothing(chunks: list[bytes]) -> None:
    assert _fed(chunks) == _fed([bytes([byte]) for byte in b"".join(chunks)])
    ended = b"".join(chunks).split(b"\0")[:-1]
    assert _fed(chunks)[0] == [piece for piece in ended if 0 < len(piece) <= LIMIT]
