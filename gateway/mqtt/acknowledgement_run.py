"""PUBACK, PUBREC, PUBREL or PUBCOMP packets that stand one behind the other."""

from collections.abc import Sequence
from functools import cache

from gateway.mqtt.encode import encode
from gateway.mqtt.packets import PubAck, PubComp, PubRec, PubRel
from gateway.mqtt.publish_run import HIGH, LOW, packet_ids
from gateway.mqtt.reason_codes import ReasonCode

SIZE = 4
"""Bytes of an acknowledgement that is nothing but its packet identifier (sections 3.4 to 3.7)."""

LONGEST = 4096
"""Bytes that are looked at for one run: a longer one is taken in parts."""

_LENGTH = SIZE - 2  # the remaining length


class AcknowledgementRun:
    """The packet identifiers of acknowledgements of one type that say nothing else."""

    __slots__ = ("count", "high", "low")

    def __init__(self, data: bytes) -> None:
        """Take whole packets of SIZE bytes each."""
        self.count = len(data) // SIZE
        self.high = data[2::SIZE]
        self.low = data[3::SIZE]

    @property
    def packet_ids(self) -> Sequence[int]:
        """The packet identifiers, in order."""
        return packet_ids(self.high, self.low)

    def matches(self, start: int, first: int, most: int) -> int:
        """Return how many from `start` on are for the packet identifiers from `first` on.

        It ends with the first that is not, and with `most`.
        """
        count = min(most, self.count - start)
        high, low = HIGH[first : first + count], LOW[first : first + count]
        end = start + count
        if self.high[start:end] == high and self.low[start:end] == low:
            return count
        number = 0
        while self.high[start + number] == high[number] and self.low[start + number] == low[number]:
            number += 1
        return number


def acknowledgement_run(data: bytes, first_byte: int) -> AcknowledgementRun | None:
    """Return the run that `data` begins with, of packets with this first byte; None if none."""
    types, lengths = data[0::SIZE], data[1::SIZE]
    count = len(data) // SIZE
    if len(types) == count == types.count(first_byte) == lengths.count(_LENGTH):
        return AcknowledgementRun(data) if count else None
    count = min(
        len(types) - len(types.lstrip(bytes((first_byte,)))),
        len(lengths) - len(lengths.lstrip(bytes((_LENGTH,)))),
        count,
    )
    return AcknowledgementRun(data[: count * SIZE]) if count else None


@cache
def alike(kind: type[PubAck | PubRec | PubRel | PubComp], code: ReasonCode, version: int) -> bytes:
    """Return the packet of this kind and code that `numbered` and `write_run` repeat."""
    return encode(kind(0, code), version)


def numbered(packet: bytes, packet_id: int) -> bytes:
    """Return an acknowledgement like `packet`, in which the packet identifier stands at 2."""
    return packet[:2] + packet_id.to_bytes(2, "big") + packet[4:]


def write_run(packet: bytes, high: bytes, low: bytes) -> bytearray:
    """Return acknowledgements like `packet`, in which the packet identifier stands at 2."""
    size = len(packet)
    data = bytearray(packet * len(high))
    data[2::size] = high
    data[3::size] = low
    return data
