"""Prints what the node's files give for fixed input: run by both Pythons, which must agree."""

import binascii

from node import cobs, frames
from node.loop import Node
from node.quantities import QUANTITIES, UNITS
from node.ring import SIZE_MIN
from node.simulated_sensor import SimulatedSensor

VALUES: "list[bool | int | float | str | tuple[int, int]]" = [
    False,
    True,
    0,
    -1,
    2**63 - 1,
    -(2**63),
    21.5,
    -0.1,
    1e300,
    "",
    "°",
    (2137, -2),
    (-1, 9),
]
UNENCODABLE: "list[int | str | tuple[int, int]]" = [2**63, (2**31, 0), (0, 10), "x" * 33]


class Line:
    """Shows what the node sends, and answers every second frame."""

    def __init__(self) -> None:
        self.answers = b""
        self.count = 0

    def read(self) -> bytes:
        heard, self.answers = self.answers, b"noise\0"
        return heard

    def write(self, data: bytes) -> None:
        print("sent", show(data))
        body = frames.unframe(data[1:-1])
        self.count += 1
        if body and self.count % 2:
            self.answers += frames.frame(b"\x01\x02\x00" + body[3:11])


class Clock:
    now = 0

    def ms(self) -> int:
        return self.now


def show(data: bytes) -> str:
    return binascii.hexlify(data).decode()


def encodings() -> None:
    for length in (0, 1, 7, 253):
        data = bytes([index * 7 % 256 for index in range(length)])
        stuffed = cobs.encode(data)
        print("cobs", show(stuffed), cobs.decode(stuffed) == data)
        print("crc", binascii.crc32(data))
    for value in VALUES:
        print("value", show(frames.encode_value(value)))
    for value in UNENCODABLE:
        try:
            frames.encode_value(value)
        except ValueError as refusal:
            print("refused", refusal)
    for quantity in QUANTITIES.split():
        print("quantity", show(frames.encode_reading(quantity, 1, "named")))
    for unit in UNITS.split():
        print("unit", show(frames.encode_reading("named", 1, unit)))


def life_of_a_node() -> None:
    clock, line = Clock(), Line()
    node = Node(
        "n1",
        0xFFFFFFFF,
        line,
        SimulatedSensor(3),
        clock,
        500,
        lambda: 2**41 + clock.now,
        waiting_bytes=SIZE_MIN,
    )
    for _ in range(192):
        wait = node.step()
        print("wait", wait)
        clock.now += wait
    print("dropped", node.buffer.dropped, "refused", node.buffer.refused)


encodings()
life_of_a_node()
