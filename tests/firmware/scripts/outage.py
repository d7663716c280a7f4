"""Pulls a node's cable for ten minutes of its own clock; prints what arrived afterwards."""

import gc
import struct
import sys

from node import frames
from node.loop import Node
from node.ring import SIZE_MIN
from node.simulated_sensor import SimulatedSensor
from node.spill import Spill

OUTAGE_S = 600
AFTERWARDS_S = 60  # in which all of it arrives, and what is sampled meanwhile
SETTLED_S = 60
GROWTH_MAX = 16 * 1024  # 64-bit words: a board's are half as large


class Cable:
    """Loses everything while it is out; in, it answers each frame, and twice every third one."""

    def __init__(self) -> None:
        self.plugged = False
        self.answers = b""
        self.clocks: dict[int, int] = {}  # of each sequence number, in seconds

    def read(self) -> bytes:
        heard, self.answers = self.answers, b""
        return heard

    def write(self, data: bytes) -> None:
        body = frames.unframe(data[1:-1])
        if not self.plugged or body is None:
            return
        sequence, clock = struct.unpack("<IQ", body[7:19])
        self.clocks[sequence] = clock // 1000
        answer = frames.frame(b"\x01\x02\x00" + body[3:11])
        self.answers += answer if sequence % 3 else answer + answer


class Clock:
    now = 0

    def ms(self) -> int:
        return self.now


def allocated() -> int:
    gc.collect()
    used: int = gc.mem_alloc()  # type: ignore[attr-defined]  # MicroPython's
    return used


def make_node(cable: Cable, clock: Clock) -> Node:
    """Return a node with its usual memory, or with next to none and a folder of the flash."""
    if len(sys.argv) == 1:
        return Node("n1", 7, cable, SimulatedSensor(), clock, 1000)
    spill = Spill(sys.argv[1], 65536)
    sensor = SimulatedSensor()
    return Node("n1", 7, cable, sensor, clock, 1000, waiting_bytes=SIZE_MIN, spill=spill)


def main() -> None:
    cable, clock = Cable(), Clock()
    node = make_node(cable, clock)
    settled = 0
    for second in range(OUTAGE_S + 1):
        clock.now = second * 1000
        node.step()
        if second == SETTLED_S:
            settled = allocated()
    growth = allocated() - settled
    cable.plugged = True
    for _ in range(AFTERWARDS_S * 50):
        clock.now += 20
        node.step()
    seconds = range(OUTAGE_S + AFTERWARDS_S)
    missing = [second for second in seconds if cable.clocks.get(second + 1) != second]
    print("dropped", node.buffer.dropped, "missing", missing)
    print("grown by less than 16 KiB:", growth < GROWTH_MAX)


main()
