"""Packets cut out of a stream, whatever pieces it comes in."""

import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.mqtt.errors import MalformedPacket
from gateway.mqtt.framing import Framer
from gateway.mqtt.reason_codes import ReasonCode
from tests.mqtt.packet_cases import PACKET_CASES
from tests.support.frames import next_frame

STREAM = b"".join(case.raw for case in PACKET_CASES)


def frames(framer: Framer) -> list[tuple[int, bytes]]:
    """Return first byte and body of each packet that is there."""
    found = []
    while (frame := next_frame(framer)) is not None:
        buffer, first_byte, start, end = frame
        found.append((first_byte, buffer[start:end]))
    return found


def fed_at_once(data: bytes) -> list[tuple[int, bytes]]:
    framer = Framer(1 << 20)
    framer.feed(data)
    return frames(framer)


@pytest.mark.uncovered
@given(st.lists(st.integers(0, len(STREAM)), max_size=12).map(sorted), st.data())
def test_where_a_stream_is_cut_makes_no_difference(cuts: list[int], data: st.DataObject) -> None:
    framer = Framer(1 << 20)
    found = []
    for start, stop in zip([0, *cuts], [*cuts, len(STREAM)], strict=True):
        framer.feed(STREAM[start:stop])
        if data.draw(st.booleans()):
            found += frames(framer)
        elif data.draw(st.booleans()) and (frame := next_frame(framer)) is not None:
            buffer, first_byte, body_start, body_end = frame
            found.append((first_byte, buffer[body_start:body_end]))
    assert found + frames(framer) == fed_at_once(STREAM)


def test_a_chunk_is_the_buffer_while_nothing_is_pending() -> None:
    framer = Framer(100)
    for chunk in (b"\xc0\x00" * 3, b"\xd0\x00"):
        framer.feed(chunk)
        while (frame := next_frame(framer)) is not None:
            assert frame[0] is chunk


def test_of_a_cut_packet_only_its_first_part_is_kept() -> None:
    framer = Framer(100)
    chunk = bytes(bytearray(b"\xc0\x00" * 1000 + b"\x30"))
    references = sys.getrefcount(chunk)
    framer.feed(chunk)
    assert len(frames(framer)) == 1000
    assert sys.getrefcount(chunk) == references
    framer.feed(b"\x03\x00\x01t")
    assert frames(framer) == [(0x30, b"\x00\x01t")]


@pytest.mark.uncovered
@pytest.mark.timeout(30)
def test_a_large_packet_in_many_small_chunks_costs_no_more_than_its_bytes() -> None:
    size = 8 << 20  # joined anew for each chunk this would be 500 GB to copy
    framer = Framer(size + 5)
    framer.feed(b"\x30" + b"\x80\x80\x80\x04")
    for _ in range(size // 64):
        assert next_frame(framer) is None
        framer.feed(b"x" * 64)
    assert frames(framer) == [(0x30, b"x" * size)]


@pytest.mark.uncovered
@pytest.mark.timeout(30)
def test_many_small_chunks_before_the_first_question_cost_no_more() -> None:
    count = (8 << 20) // 64
    framer = Framer(64)
    for _ in range(count):
        framer.feed(b"\x30\x3e" + b"x" * 62)
    assert len(frames(framer)) == count


@pytest.mark.parametrize("cut", [2, 3, 4, 5])
def test_a_packet_above_the_maximum_is_refused_at_its_header(cut: int) -> None:
    header = b"\x30\x80\x80\x80\x01"
    framer = Framer(1000)
    framer.feed(header[:cut])
    if cut < len(header):
        assert next_frame(framer) is None
        framer.feed(header[cut:])
    with pytest.raises(MalformedPacket) as raised:
        next_frame(framer)
    assert raised.value.reason_code == ReasonCode.PACKET_TOO_LARGE
    assert raised.value.reason == "a packet of 2097157 bytes; at most 1000"


@pytest.mark.parametrize(
    ("header", "body"), [(b"\x30\x00", 0), (b"\x30\x7f", 127), (b"\x30\x80\x01", 128)]
)
def test_the_maximum_counts_the_whole_packet(header: bytes, body: int) -> None:
    size = len(header) + body
    framer = Framer(size)
    framer.feed(header + b"x" * body)
    assert frames(framer) == [(0x30, b"x" * body)]
    smaller = Framer(size - 1)
    smaller.feed(header)
    with pytest.raises(MalformedPacket, match=f"a packet of {size} bytes; at most {size - 1}"):
        next_frame(smaller)


@pytest.mark.parametrize("cut", [1, 2, 3, 9])
def test_the_rest_begins_with_what_is_too_large_and_is_forgotten(cut: int) -> None:
    framer, large = Framer(4), b"\x30\x80\x01abcdef"
    framer.feed(b"\xc0\x00" + large[:cut])
    assert next_frame(framer) is not None
    if cut < 3:
        assert next_frame(framer) is None
        framer.feed(large[cut:])
    with pytest.raises(MalformedPacket, match="a packet of 131 bytes; at most 4"):
        next_frame(framer)
    assert framer.pop_rest() == (large if cut < 3 else large[:cut])
    framer.feed(b"\xd0\x00")
    assert frames(framer) == [(0xD0, b"")]


@pytest.mark.parametrize("behind", [b"", b"\x00", b"\x80\x01"])
def test_a_remaining_length_of_five_bytes_is_malformed(behind: bytes) -> None:
    framer = Framer(1 << 28)
    framer.feed(b"\x30\xff\xff\xff\xff" + behind)
    with pytest.raises(MalformedPacket, match="more than 4 bytes") as raised:
        next_frame(framer)
    assert raised.value.reason_code == ReasonCode.MALFORMED_PACKET


def test_no_packet_of_any_version_begins_with_0() -> None:
    framer = Framer(100)
    framer.feed(b"\0\0")
    with pytest.raises(MalformedPacket):
        next_frame(framer)


def test_an_error_comes_after_the_packets_before_it() -> None:
    framer = Framer(100)
    framer.feed(b"\xc0\x00\xd0\x00\x30\xff\xff\xff\xff")
    assert next_frame(framer) == (b"\xc0\x00\xd0\x00\x30\xff\xff\xff\xff", 0xC0, 2, 2)
    assert next_frame(framer) is not None
    with pytest.raises(MalformedPacket):
        next_frame(framer)


@given(st.lists(st.binary(max_size=8)))
def test_any_bytes_give_packets_or_a_malformed_packet(chunks: list[bytes]) -> None:
    framer = Framer(200)
    consumed = 0
    for chunk in chunks:
        framer.feed(chunk)
        try:
            consumed += sum(2 + len(body) for _, body in frames(framer))
        except MalformedPacket:
            return
    assert consumed <= sum(map(len, chunks))


def test_what_was_read_is_let_go() -> None:
    data = b"".join([STREAM] * 2)  # an object of its own
    framer, before = Framer(1 << 20), sys.getrefcount(data)
    framer.feed(data)
    assert sys.getrefcount(data) == before + 1
    while next_frame(framer) is not None:
        pass
    assert sys.getrefcount(data) == before


def test_the_next_first_byte_is_known_before_the_packet_is_whole() -> None:
    framer = Framer(1_000)
    assert framer.next_first_byte == 0
    framer.feed(b"\xc0\x00\x30\x64")
    assert framer.next_first_byte == 0xC0
    assert next_frame(framer) is not None
    assert framer.next_first_byte == 0x30
    for _ in range(2):
        assert next_frame(framer) is None
        framer.feed(bytes(10))
        assert framer.next_first_byte == 0x30
