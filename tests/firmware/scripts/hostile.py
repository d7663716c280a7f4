"""A host that means harm: prints how often a node sampled meanwhile, and how its memory grew.

micropython hostile.py SEED STEPS
"""

import gc
import random
import struct
import sys

from node import frames
from node.loop import Node
from node.programs import Programs
from node.simulated_sensor import SimulatedSensor

SECOND = 1000
BOOT = 7
QUANTITIES = (b"temperature", b"humidity", b"pressure", b"x" * 64)
OPERANDS = (b"\0", b"\1", b"\2", b"\3", b"\4", b"\5", b"\6", b"\7")
LEAVES = {0x10: 1, 0x11: 1, 0x20: 2, 0x21: 2, 0x22: 2, 0x23: 2, 0x24: 2, 0x25: 2, 0x40: 1, 0x41: 1}


def random_bytes(size: int) -> bytes:
    return bytes([random.getrandbits(8) for _ in range(size)])


def operand() -> bytes:
    kind = random.choice(OPERANDS)
    if kind in (b"\5", b"\6"):
        bits = random.choice((0, 0xFF, 0x7F, 0x80, random.getrandbits(8)))
        return kind + random.choice((random_bytes(8), bytes([bits]) * 8))
    if kind == b"\7":
        text = random.choice((b"", b"1e999", b"-1e-400", b"0x", b"1" * 60, "°".encode(), b"\xff"))
        return kind + bytes([len(text)]) + text
    return kind


def program() -> bytes:
    """Return one that often verifies, whatever it then does with a reading."""
    code, depth = b"\1", 0
    while len(code) < 150 and (depth != 1 or random.getrandbits(2)):
        if depth > 1 and random.getrandbits(1):
            code += bytes([random.choice((0x31, 0x32))])
            depth -= 1
        elif depth and random.getrandbits(1):
            code += bytes([random.choice((0x30, 0x33, 0x34, 0x35))])
        else:
            opcode = random.choice(list(LEAVES))
            code += bytes([opcode]) + b"".join([operand() for _ in range(LEAVES[opcode])])
            depth += 1
    return code if random.getrandbits(3) else random_bytes(random.getrandbits(8))


def install(number: int) -> bytes:
    name = random.choice(QUANTITIES)
    head = struct.pack("<BBIIB", 1, 3, BOOT, number, 6)
    guard = random.choice((0, 1, 86400, 0xFFFFFFFF))
    argument = struct.pack("<IIB", number, guard, len(name)) + name + program()
    return head + argument[:225]


class Host:
    """Says something else each time; what it has heard and said, it says again."""

    def __init__(self) -> None:
        self._number = 0
        self._past: list[bytes] = []
        self.readings = 0
        self.installed = 0

    def write(self, data: bytes) -> None:
        body = frames.unframe(data[1:-1])
        if body is not None and body[1] == 1:
            self.readings += 1
            self._keep(frames.frame(b"\1\2\0" + body[3:11]))
        elif body is not None and body[1] == 4:
            self.installed += body[2] == 0

    def read(self) -> bytes:
        what = random.getrandbits(3)
        if what == 0:
            return random_bytes(random.getrandbits(9))
        if what == 1:
            return b"\xff" * 512
        if what == 2 and self._past:  # again, and in any order
            return b"".join([random.choice(self._past) for _ in range(4)])
        if what == 3 and self._past:  # with a bit changed
            frame = bytearray(random.choice(self._past))
            frame[random.getrandbits(16) % len(frame)] ^= 1 << random.getrandbits(3)
            return bytes(frame)
        if what == 4:
            body = struct.pack("<BBIIB", 1, 3, BOOT, self._next(), random.choice((1, 4, 5, 9, 255)))
            return self._keep(frames.frame(body + random_bytes(random.getrandbits(5))))
        if what == 5:
            return frames.frame(
                bytes([1, random.getrandbits(8)]) + random_bytes(random.getrandbits(6))
            )
        return self._keep(frames.frame(install(self._next())))

    def _next(self) -> int:
        self._number += 1
        return self._number

    def _keep(self, frame: bytes) -> bytes:
        self._past.append(frame)
        self._past = self._past[-16:]
        return frame


class Board:
    restarts = 0

    def identify(self, _seconds: int) -> None:
        pass

    def restart(self) -> None:
        self.restarts += 1


class Counted(SimulatedSensor):
    count = 0

    def read(self) -> "list[tuple[str, tuple[int, int], str]]":
        self.count += 1
        return SimulatedSensor.read(self)


class Clock:
    now = 0

    def ms(self) -> int:
        return self.now


def allocated() -> int:
    gc.collect()
    used: int = gc.mem_alloc()  # type: ignore[attr-defined]  # MicroPython's
    return used


def main() -> None:
    random.seed(int(sys.argv[1]))
    host, sensor, clock = Host(), Counted(), Clock()
    node = Node("n1", BOOT, host, sensor, clock, SECOND, board=Board(), programs=Programs())
    node.step()
    before, most = allocated(), 0
    steps = int(sys.argv[2])
    for step in range(steps):
        clock.now = step * SECOND // 2
        node.step()
        if step % 50 == 0:
            most = max(most, allocated() - before)
    print("kept sampling:", sensor.count >= steps // 2, "installed:", host.installed > steps // 50)
    print("heard:", host.readings > steps // 50, "grown by", most)


main()
