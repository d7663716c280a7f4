"""Packets that begin alike, found without decoding them."""

import pytest

from gateway.mqtt.errors import MalformedPacket
from gateway.mqtt.framing import Framer
from gateway.mqtt.publication import PacketBatch
from tests.support.frames import next_frame
from tests.support.table import table


def like(payload: bytes) -> bytes:
    size = 3 + len(payload)
    length = bytes((size,)) if size < 128 else bytes((size & 0x7F | 0x80, size >> 7))
    return b"\x30" + length + b"\0\1a" + payload


def batch(framer: Framer, most: int = 100, most_bytes: int = 10_000) -> list[bytes]:
    """Return the packets that are taken with the next one."""
    frame = next_frame(framer)
    assert frame is not None
    buffer, _, body, end = frame
    first = buffer[framer.start : end]
    header = len(first) - (end - body)
    found = PacketBatch(first, len(first), header, 3, 3)
    framer.extend(found, most, most_bytes)
    assert found.largest == max(len(found.slice(number, 1)) for number in range(found.count))
    assert all(found.data[offset - 3 : offset] == b"\0\1a" for offset in found.offsets)
    return [found.slice(number, 1) for number in range(found.count)]


SAME, MANY = [like(b"%02d" % number) for number in range(20)], [like(b"x" * n) for n in (2, 9, 0)]
LONG = [like(b"1"), like(b"x" * 200), like(b"y" * 200), like(b"")]
BATCHES = {"one size": SAME, "many sizes": MANY, "long ones": LONG, "first alike": [*SAME, *MANY]}


@pytest.mark.parametrize("packets", BATCHES.values(), ids=BATCHES)
def test_a_batch_ends_with_another_packet(packets: list[bytes]) -> None:
    framer = Framer(1 << 20)
    other = b"\x31" + packets[0][1:]
    framer.feed(b"".join([*packets, other, *packets]))
    assert batch(framer) == packets
    assert batch(framer) == [other]
    assert batch(framer, most=3) == packets[:3]
    if packets[3:]:
        assert batch(framer) == packets[3:]
    assert next_frame(framer) is None


@pytest.mark.parametrize("packets", BATCHES.values(), ids=BATCHES)
def test_a_batch_is_bounded_in_bytes(packets: list[bytes]) -> None:
    whole = sum(map(len, packets))
    for most_bytes in range(whole + 2):
        framer = Framer(1 << 20)
        framer.feed(b"".join(packets))
        taken = batch(framer, most_bytes=most_bytes)
        assert taken == packets[: len(taken)]
        assert len(taken) == 1 or sum(map(len, taken)) <= most_bytes
        assert len(taken) == len(packets) or (sum(map(len, packets[: len(taken) + 1])) > most_bytes)


ENDS = {
    "another topic": like(b"x").replace(b"a", b"b"),
    "not whole": like(b"xyz")[:-1],
    "no length": b"\x30",
    "half a length": b"\x30\x83",
    "a malformed length": b"\x30\xff\xff\xff\xff\x01",
    "no room for its topic": b"\x30\x02\0\1a",
    "a length written too long": b"\x30\x84\x00" + like(b"x")[2:],
    "nothing": b"",
}


@table("last", ENDS.values(), ids=ENDS)
@table("packets", BATCHES.values(), ids=BATCHES)
def test_what_is_not_taken_with_others(packets: list[bytes], last: bytes) -> None:
    framer = Framer(1 << 20)
    framer.feed(b"".join(packets) + last)
    assert batch(framer) == packets


def test_a_packet_above_the_maximum_is_in_no_batch() -> None:
    framer = Framer(100)
    framer.feed(like(b"1") + like(b"x" * 120))
    assert batch(framer) == [like(b"1")]
    with pytest.raises(MalformedPacket):
        next_frame(framer)


def test_what_follows_a_packet_that_came_in_pieces_is_taken_with_it() -> None:
    framer = Framer(1 << 20)
    data = like(b"12") + like(b"34") + like(b"5")
    for byte in data[:-1]:
        framer.feed(bytes((byte,)))
    assert batch(framer) == [like(b"12"), like(b"34")]
    framer.feed(data[-1:])
    assert batch(framer) == [like(b"5")]


def test_what_was_returned_last_can_be_looked_at_and_counted_anew() -> None:
    framer = Framer(1 << 20)
    framer.feed(b"\x40\2\0\1\x40\2\0\2\xc0\0")
    assert next_frame(framer) is not None
    assert framer.last_bytes(6) == b"\x40\2\0\1\x40\2"
    assert framer.last_bytes(99) == b"\x40\2\0\1\x40\2\0\2\xc0\0"
    framer.go_on(8)
    frame = next_frame(framer)
    assert frame is not None
    assert frame[1] == 0xC0
