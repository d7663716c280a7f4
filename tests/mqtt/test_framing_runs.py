"""Packets that begin alike, found without decoding them."""

import pytest

from gateway.mqtt.errors import MalformedPacket
from gateway.mqtt.framing import Framer


def like(payload: bytes) -> bytes:
    return bytes([0x30, 3 + len(payload), 0, 1, 0x61]) + payload


def run(framer: Framer, least: int = 3, largest: int = 1_000, most: int = 100) -> list[bytes]:
    """Return the packets of the run, after a look at where it says their bodies are."""
    found = framer.run(b"\0\1a", least, largest, most)
    assert [found.data[body : body + 3] for body in found.bodies] == [b"\0\1a"] * len(found.starts)
    ends = [*found.starts[1:], len(found.data)]
    return [found.data[start:end] for start, end in zip(found.starts, ends, strict=True)]


def test_a_run_begins_alike_and_ends_with_another_packet() -> None:
    framer = Framer(1 << 20)
    packets = [like(b"%02d" % number) for number in range(20)]
    framer.feed(b"".join(packets) + b"\x31" + packets[0][1:] + b"".join(packets))
    assert framer.next_frame() is not None
    assert framer.size == 7
    assert run(framer) == packets
    framer.pass_over(7 * 20)
    assert framer.next_frame() is not None
    assert run(framer) == [b"\x31" + packets[0][1:]]
    assert framer.next_frame() is not None
    assert run(framer, most=3) == packets[:3]
    framer.pass_over(7 * 20)
    assert framer.next_frame() is None


ENDS = {
    "another topic": (like(b"x").replace(b"a", b"b"), {}),
    "not whole": (like(b"xyz")[:-1], {}),
    "no length": (b"\x30", {}),
    "half a length": (b"\x30\x83", {}),
    "a malformed length": (b"\x30\xff\xff\xff\xff\x01", {}),
    "too large": (like(b"x" * 30), {"largest": 30}),
    "too little": (like(b"x"), {"least": 5}),
    "a length written too long": (b"\x30\x84\x00" + like(b"x")[2:], {}),
    "enough of them": (like(b"x"), {"most": 3}),
}


@pytest.mark.parametrize(("last", "bounds"), ENDS.values(), ids=ENDS)
def test_what_ends_a_run_of_packets_of_many_sizes(last: bytes, bounds: dict[str, int]) -> None:
    framer = Framer(1 << 20)
    packets = [like(b"11"), like(b"22"), like(b"x" * 20)]
    framer.feed(b"".join(packets) + last)
    assert framer.next_frame() is not None
    assert run(framer, **bounds) == packets


def test_a_packet_above_the_maximum_is_in_no_run() -> None:
    framer = Framer(100)
    framer.feed(like(b"1") + like(b"x" * 120))
    assert framer.next_frame() is not None
    assert run(framer) == [like(b"1")]
    framer.pass_over(len(like(b"1")))
    with pytest.raises(MalformedPacket):
        framer.next_frame()


LIKE = {
    "alike": (like(b"xyz"), 8),
    "and more behind it": (like(b"xyz") + b"\x30", 8),
    "nothing but that": (like(b""), 5),
    "nothing": (b"", 0),
    "another type": (b"\x31" + like(b"xyz")[1:], 0),
    "another topic": (like(b"x").replace(b"a", b"b"), 0),
    "not whole": (like(b"xyz")[:-1], 0),
    "shorter than that": (b"\x30\x02\0\1a", 0),
    "no length": (b"\x30", 0),
    "a malformed length": (b"\x30\xff\xff\xff\xff\x01", 0),
    "a length written too long": (b"\x30\x84\x00" + like(b"x")[2:], 0),
    "above the maximum": (like(b"x" * 100), 0),
}


@pytest.mark.parametrize(("data", "size"), LIKE.values(), ids=LIKE)
def test_the_next_packet_is_like_another(data: bytes, size: int) -> None:
    framer = Framer(100)
    framer.feed(data)
    if data:
        whole = len(data) - 5 if size == len(data) else -1
        assert Framer(100).alone(data, 0x30, b"\0\1a") == whole
        assert framer.alone(data, 0x30, b"\0\1a") == -1  # it has bytes to look at first
    assert framer.like(0x30, b"\0\1a") == size
    if size:
        framer.skip(size)
        assert framer.size == size


LENGTHS = {
    "the longest of one byte": (b"\x30\x7f\1" + bytes(126), 126),
    "two bytes": (b"\x30\x80\1\1" + bytes(127), 127),
    "two bytes, taken for one": (b"\x30\x81\1" + bytes(128), -1),
    "two bytes, one too many": (b"\x30\x80\1\1" + bytes(128), -1),
    "half of a length": (b"\x30\x80", -1),
}


@pytest.mark.parametrize(("data", "rest"), LENGTHS.values(), ids=LENGTHS)
def test_a_packet_alone_may_have_any_length(data: bytes, rest: int) -> None:
    assert Framer(200).alone(data, 0x30, b"\1") == rest
    assert Framer(100).alone(data, 0x30, b"\1") == -1


@pytest.mark.parametrize("data", [data for data, _ in LIKE.values()], ids=LIKE)
def test_the_next_packet_of_one_kind_is_taken(data: bytes) -> None:
    framer = Framer(100)
    framer.feed(data)
    size = framer.like(0x30, b"")
    assert framer.take_like(0x30) == ((data, 2, size) if size else None)
    if size:
        framer.pass_over(0)  # gives it back
        assert framer.next_frame() == (data, 0x30, 2, size)


def test_what_is_gathered_is_like_nothing_yet() -> None:
    framer = Framer(100)
    for byte in like(b"xyz"):
        framer.feed(bytes((byte,)))
        assert framer.like(0x30, b"\0\1a") == 0
        assert framer.take_like(0x30) is None
    assert framer.next_frame() is not None


def test_a_long_packet_in_a_run_has_a_longer_header() -> None:
    framer = Framer(1 << 20)
    long = b"\x30\xcb\x01\0\1a" + b"x" * 200
    framer.feed(like(b"1") + long * 2 + like(b""))
    assert framer.next_frame() is not None
    assert run(framer) == [like(b"1"), long, long, like(b"")]


def test_what_has_come_whole_can_be_looked_at_and_skipped() -> None:
    framer = Framer(1 << 20)
    assert framer.next_byte == 0
    framer.feed(b"\x40\2\0\1\x40\2\0\2\x40")
    assert framer.next_byte == 0x40
    assert framer.look_ahead(5) == b"\x40\2\0\1\x40"
    framer.skip(8)
    assert framer.next_frame() is None
    assert framer.look_ahead(5) == b"\x40"
    framer.feed(b"\2\0")
    framer.feed(b"")
    framer.feed(b"\3")
    assert framer.next_frame() is not None
    framer.feed(b"\x30\x7f" + bytes(9))
    assert framer.next_frame() is None
    framer.feed(bytes(9))
    assert (framer.next_byte, framer.look_ahead(5)) == (0, b"")
