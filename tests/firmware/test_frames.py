"""What a node refuses to encode, and how it finds acknowledgements among noise."""

import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st
from node import frames

from tests.support.table import table

ACKNOWLEDGEMENT = frames.frame(struct.pack("<BBBII", 1, 2, 0, 7, 258))


@table(
    ("quantity", "value", "unit", "reason"),
    [
        ("", 1, None, "'' has 0 bytes: 1 to 64"),
        ("x" * 65, 1, None, "has 65 bytes: 1 to 64"),
        ("temperature", 1, "x" * 33, "has 33 bytes: 1 to 32"),
        ("temperature", "x" * 33, None, "has 33 bytes: 1 to 32"),
        ("temperature", 1 << 63, None, "value 9223372036854775808"),
        ("temperature", (1 << 31, 0), None, "mantissa 2147483648"),
        ("temperature", (1, 10), None, "exponent 10: -9 to 9"),
        ("temperature", (1, -10), None, "exponent -10: -9 to 9"),
    ],
)
def test_readings_that_cannot_be_sent(
    quantity: str, value: int | str | tuple[int, int], unit: str | None, reason: str
) -> None:
    with pytest.raises(ValueError, match=reason):
        frames.encode_reading(quantity, value, unit)


def test_the_longest_reading_of_the_longest_node_name_fits_a_frame() -> None:
    reading = frames.encode_reading("q" * 64, "t" * 32, "u" * 32)
    assert len(reading) <= frames.room("n" * 64)
    wire = frames.encode_readings("n" * 64, 1, 1, 0, 0, 0, 0, [reading])
    assert len(wire) <= frames._BODY_MAX + 7


@pytest.mark.parametrize("wall", [None, 0])
def test_what_room_says_fits_and_one_byte_more_does_not(wall: int | None) -> None:
    room = frames.room("n1")
    if wall is not None:
        frames.encode_readings("n1", 1, 1, 0, 0, 0, wall, [b"x" * room])
    with pytest.raises(ValueError, match="bytes: at most 240"):
        frames.encode_readings("n1", 1, 1, 0, 0, 0, wall, [b"x" * (room + 9)])


def test_an_age_beyond_its_field_says_the_most() -> None:
    wire = frames.encode_readings("n1", 1, 1, 0, 1 << 40, 0, None, [b"x"])
    body = frames.unframe(wire[1:-1])
    assert body is not None
    assert body[19:23] == b"\xff\xff\xff\xff"


@pytest.mark.parametrize("name", ["", "x" * 65])
def test_node_names_that_cannot_be_sent(name: str) -> None:
    with pytest.raises(ValueError, match="1 to 64 are allowed"):
        frames.room(name)


def heard(reader: frames.FrameReader, data: bytes) -> list[tuple[int, int, int] | None]:
    return [frames.decode_acknowledgement(body) for body in reader.feed(data)]


def test_acknowledgements_are_found_in_any_chunking() -> None:
    data = ACKNOWLEDGEMENT * 3
    for size in range(1, len(data) + 1):
        reader = frames.FrameReader()
        chunks = [data[start : start + size] for start in range(0, len(data), size)]
        assert [found for chunk in chunks for found in heard(reader, chunk)] == [(7, 258, 0)] * 3


@given(st.binary(max_size=200))
def test_an_acknowledgement_after_any_noise_is_found(noise: bytes) -> None:
    reader = frames.FrameReader()
    assert heard(reader, noise + ACKNOWLEDGEMENT)[-1] == (7, 258, 0)
    assert len(reader._stuffed) == 0


def test_noise_without_an_end_is_not_kept() -> None:
    reader = frames.FrameReader()
    reader.feed(b"x" * 10_000)
    assert len(reader._stuffed) == frames._HEARD_MAX + 1


@pytest.mark.parametrize(
    "body",
    [
        struct.pack("<BBBII", 2, 2, 0, 7, 258),
        struct.pack("<BBBII", 1, 1, 0, 7, 258),
        struct.pack("<BBBI", 1, 2, 0, 7),
    ],
)
def test_other_frames_mean_nothing_to_a_node(body: bytes) -> None:
    assert frames.decode_acknowledgement(body) is None


def test_a_damaged_acknowledgement_means_nothing() -> None:
    for place in range(1, len(ACKNOWLEDGEMENT) - 1):
        damaged = bytearray(ACKNOWLEDGEMENT)
        damaged[place] ^= 0x80
        assert frames.FrameReader().feed(bytes(damaged)) == []
