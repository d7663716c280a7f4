"""Batches of packets, against a list of them."""

from itertools import accumulate

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.mqtt.packets import MQTT_3_1_1
from gateway.mqtt.publication import PacketBatch, packet_ids, uneven_batch
from tests.support.broker.publications import packets

IDENTIFIER, PAYLOAD = 5, 7  # of a packet on a/b at QoS 1, in its body

SIZES = st.one_of(
    st.lists(st.sampled_from([0, 1, 3, 130]), min_size=1, max_size=6),
    st.builds(lambda size, count: [size] * count, st.integers(0, 130), st.integers(1, 6)),
)


def batch(one: list[bytes], even: bool) -> PacketBatch:
    headers = [2 if packet[1] < 0x80 else 3 for packet in one]
    data = b"".join(one)
    if even:
        return PacketBatch(data, len(one[0]), headers[0], IDENTIFIER, PAYLOAD)
    starts = [0, *accumulate(map(len, one[:-1]))]
    places = [start + header + PAYLOAD for start, header in zip(starts, headers, strict=True)]
    return uneven_batch(data, starts, places, PAYLOAD - IDENTIFIER)


def same(tested: PacketBatch, one: list[bytes]) -> None:
    """The batch says of these packets what each says."""
    count = len(one)
    assert tested.data == b"".join(one)
    assert tested.count == count
    starts = [0, *accumulate(map(len, one))]
    assert [tested.start(number) for number in range(count + 1)] == starts
    assert [*tested.starts] == starts[:-1]
    assert [tested.topic_name(number) for number in range(count)] == [b"\0\x03a/b"] * count
    contents = [packet[(2 if packet[1] < 0x80 else 3) + PAYLOAD :] for packet in one]
    assert [tested.one(number) for number in range(count)] == contents
    assert [*tested.identifiers()] == [
        int.from_bytes(packet[-len(content) - 2 : len(packet) - len(content)], "big")
        for packet, content in zip(one, contents, strict=True)
    ]
    for first in range(count):
        for end in range(first + 1, count + 1):
            assert tested.slice(first, end - first) == b"".join(one[first:end])
            size = sum(map(len, contents[first:end]))
            assert tested.payload_bytes(first, end - first) == size


def numbered(sizes: list[int], first: int, step: int = 1) -> list[bytes]:
    return [
        packets([b"x" * size], version=MQTT_3_1_1, first=first + number * step)
        for number, size in enumerate(sizes)
    ]


def test_the_first_of_packets_of_several_sizes_stay() -> None:
    one = numbered([1, 3, 0], 1)
    tested = batch(one, even=False)
    tested.shorten(2)
    same(tested, one[:2])


def test_the_first_batch_of_a_process_gets_its_identifiers(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("gateway.mqtt.publication._HIGH", b"", raising=False)
    one = numbered([2, 2], 254)
    assert batch(one, even=True).numbered(0, 2, 255) == b"".join(numbered([2, 2], 255))


@pytest.mark.uncovered
@given(SIZES, st.integers(1, 60_000), st.integers(1, 2), st.data())
def test_a_batch_is_as_a_list_of_its_packets(
    sizes: list[int], first: int, step: int, data: st.DataObject
) -> None:
    one = numbered(sizes, first, step)
    tested = batch(one, len(set(sizes)) == 1)
    same(tested, one)
    assert tested.largest == max(map(len, one))
    begin = data.draw(st.integers(0, len(sizes) - 1))
    count = data.draw(st.integers(1, len(sizes) - begin))
    part = tested.part(begin, count)
    same(part, one[begin : begin + count])
    assert part.largest == max(map(len, one[begin : begin + count]))
    packet_id = data.draw(st.integers(1, 65_536 - count))
    found = tested.numbered(begin, count, packet_id)
    assert found == b"".join(numbered(sizes[begin : begin + count], packet_id))
    tested.shorten(count)
    same(tested, one[:count])
    assert tested.largest >= max(map(len, one[:count]))


@pytest.mark.uncovered
@given(st.lists(st.integers(0, 65_535), min_size=1, max_size=5), st.booleans())
def test_packet_identifiers_are_a_range_where_they_rise_by_one(
    numbers: list[int], rising: bool
) -> None:
    if rising:
        first = min(numbers[0], 65_536 - len(numbers))
        numbers = [*range(first, first + len(numbers))]
    found = packet_ids(bytes(n >> 8 for n in numbers), bytes(n & 0xFF for n in numbers))
    assert [*found] == numbers
    assert isinstance(found, range) == (numbers == [*range(numbers[0], numbers[0] + len(numbers))])
