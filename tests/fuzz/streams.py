"""Streams of bytes that are almost MQTT: packets in any order, some of them damaged."""

from collections.abc import Callable

from hypothesis import strategies as st

from tests.mqtt.cases.case import MalformedCase, PacketCase
from tests.mqtt.packet_cases import MALFORMED_CASES, PACKET_CASES

LONGEST_BODY = 2_000
"""Bytes of a packet of the tables that is worth its time here."""


def raw(case: MalformedCase) -> bytes:
    """Return the malformed packet whole, if it is one of less than 128 bytes, else cut."""
    body = case.body[:0x7F]
    return bytes([case.first_byte, len(body)]) + body


def usable(case: PacketCase) -> bool:
    return len(case.raw) < LONGEST_BODY


PACKETS = [case.raw for case in PACKET_CASES if usable(case)] + [
    raw(case) for case in MALFORMED_CASES
]
"""Every packet of the tables, well-formed or not, of every version."""

CONNECTS = {
    version: [case.raw for case in PACKET_CASES if case.raw[0] == 0x10 and case.version == version]
    for version in (3, 4, 5)
}
"""Every CONNECT of the tables by its version."""

Damage = Callable[[bytes], bytes]
"""Changes a stream at one place."""


def _changed(place: int, value: int) -> Damage:
    return lambda data: data[:place] + bytes([value]) + data[place + 1 :]


def _inserted(place: int, more: bytes) -> Damage:
    return lambda data: data[:place] + more + data[place:]


def _deleted(place: int, count: int) -> Damage:
    return lambda data: data[:place] + data[place + count :]


def _repeated(place: int, count: int) -> Damage:
    return lambda data: data[: place + count] + data[place:]


PLACES = st.integers(0, 300)

DAMAGES = st.one_of(
    st.builds(_changed, PLACES, st.integers(0, 255)),
    st.builds(_inserted, PLACES, st.binary(min_size=1, max_size=6)),
    st.builds(_deleted, PLACES, st.integers(1, 6)),
    st.builds(_repeated, PLACES, st.integers(1, 40)),
)


def _damaged(packets: list[bytes], damages: list[Damage]) -> bytes:
    data = b"".join(packets)
    for damage in damages:
        data = damage(data)
    return data


STREAMS = st.one_of(
    st.builds(
        _damaged,
        st.lists(st.one_of(st.sampled_from(PACKETS), st.binary(max_size=20)), max_size=12),
        st.lists(DAMAGES, max_size=4),
    ),
    st.binary(max_size=200),
)
"""What a client might send behind its CONNECT, or instead of it."""

BEGINNINGS = st.one_of(st.just(b""), *(st.sampled_from(connects) for connects in CONNECTS.values()))
"""What a connection begins with: a CONNECT that is accepted, or none."""
