"""Framing survives whatever a line does: cuts, noise, damage, and bytes that never end."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.bridges.serial.serial_frames import (
    BODY_MAX,
    STUFFED_MAX,
    FrameDecoder,
    encode_frame,
    stuff,
)
from gateway.counters import Counters

BODIES = st.binary(min_size=1, max_size=BODY_MAX)


@pytest.fixture
def decoder(counters: Counters) -> FrameDecoder:
    return FrameDecoder(counters.add)


@given(st.lists(BODIES, max_size=5), st.integers(1, 50))
def test_frames_come_back_in_any_chunking(bodies: list[bytes], size: int) -> None:
    decoder = FrameDecoder(Counters().add)
    data = b"".join(map(encode_frame, bodies))
    chunks = [data[start : start + size] for start in range(0, len(data), size)]
    assert [body for chunk in chunks for body in decoder.feed(chunk)] == bodies


def test_a_frame_survives_a_split_at_each_byte() -> None:
    data = encode_frame(b"one\0two")
    for cut in range(len(data)):
        decoder = FrameDecoder(Counters().add)
        assert decoder.feed(data[:cut]) + decoder.feed(data[cut:]) == [b"one\0two"]


@given(st.binary(max_size=600), BODIES)
def test_a_frame_after_any_noise_arrives(noise: bytes, body: bytes) -> None:
    decoder = FrameDecoder(Counters().add)
    assert body in decoder.feed(noise + encode_frame(body))


@given(BODIES, BODIES, st.data())
def test_half_a_frame_does_not_take_the_next_with_it(
    lost: bytes, body: bytes, data: st.DataObject
) -> None:
    frame = encode_frame(lost)
    half = frame[: data.draw(st.integers(1, len(frame) - 2))]
    assert FrameDecoder(Counters().add).feed(half + encode_frame(body)) == [body]


@given(BODIES, st.data())
def test_a_damaged_byte_never_gives_another_body(body: bytes, data: st.DataObject) -> None:
    frame = bytearray(encode_frame(body))
    place = data.draw(st.integers(1, len(frame) - 2))
    frame[place] ^= data.draw(st.integers(1, 255))
    assert FrameDecoder(Counters().add).feed(bytes(frame)) == []


@given(st.lists(st.binary(max_size=300)))
def test_any_bytes_are_taken_without_an_error_and_accounted_for(chunks: list[bytes]) -> None:
    counters = Counters()
    decoder = FrameDecoder(counters.add)
    found = [body for chunk in chunks for body in decoder.feed(chunk)]
    garbage = counters.count("garbage_bytes")
    passed = sum(len(encode_frame(body)) - 2 for body in found)
    assert garbage + passed <= sum(map(len, chunks))


def test_garbage_is_counted_by_its_bytes(decoder: FrameDecoder, counters: Counters) -> None:
    assert decoder.feed(b"\x09garbage\x00") == []
    assert counters.count("garbage_bytes") == 8


def test_an_oversize_piece_is_given_up_and_counted(
    decoder: FrameDecoder, counters: Counters
) -> None:
    assert decoder.feed(b"\x01" * (STUFFED_MAX + 1)) == []
    assert decoder.feed(b"\x01" * 1000 + b"\x00") == []
    assert counters.count("garbage_bytes") == STUFFED_MAX + 1001
    assert decoder.feed(encode_frame(b"next")) == [b"next"]


def test_a_wrong_check_is_counted_as_a_frame(decoder: FrameDecoder, counters: Counters) -> None:
    assert decoder.feed(stuff(b"body" + b"\x01\x02\x03\x04") + b"\0") == []
    assert counters.count("crc_errors") == 1
    assert counters.count("garbage_bytes") == 0


@pytest.mark.parametrize("size", range(5))
def test_a_piece_too_short_for_body_and_check_is_garbage(
    size: int, decoder: FrameDecoder, counters: Counters
) -> None:
    stuffed = stuff(b"x" * size)
    assert decoder.feed(stuffed + b"\0") == []
    assert counters.count("garbage_bytes") == len(stuffed)
