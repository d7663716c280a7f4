"""Samples with a gateway, and an hour without; prints how the memory in use differs meanwhile.

micropython steady.py
"""

import gc

import micropython
from node import frames
from node.buffer import WAITING_BYTES
from node.loop import Node
from node.ring import Ring

SAMPLES = 3600
SETTLED = 60
EVERY = 200


class Weather:
    """Three quantities that change a little from sample to sample."""

    state = 1

    def read(self) -> "list[tuple[str, tuple[int, int], str]]":
        self.state = self.state * 1103515245 + 12345 & 0x7FFFFFFF
        change = self.state >> 16
        return [
            ("temperature", (2100 + change % 50, -2), "°C"),
            ("humidity", (4800 + change % 80, -2), "%"),
            ("pressure", (101300 + change % 20, -2), "hPa"),
        ]


class Line:
    """Stores what it is given, if it is plugged in, and acknowledges it."""

    plugged = True
    answers = b""

    def read(self) -> bytes:
        heard, self.answers = self.answers, b""
        return heard

    def write(self, data: bytes) -> None:
        body = frames.unframe(data[1:-1])
        if self.plugged and body is not None:
            self.answers += frames.frame(b"\x01\x02\x00" + body[3:11])


class Clock:
    now = 0

    def ms(self) -> int:
        return self.now


class LockedRing(Ring):
    """A queue that takes entries with the heap locked, which makes taking memory an error."""

    def append(self, body: bytes) -> bool:
        micropython.heap_lock()
        taken = Ring.append(self, body)
        micropython.heap_unlock()
        return taken


def clean(n: int) -> int:
    """Overwrite the stack, where something may still be referred to."""
    a = b = c = d = e = f = g = h = 0
    return clean(n - 1) + a + b + c + d + e + f + g + h if n else 0


def allocated() -> int:
    gc.collect()
    clean(40)
    gc.collect()
    used: int = gc.mem_alloc()  # type: ignore[attr-defined]  # MicroPython's
    return used


def main() -> None:
    line, clock = Line(), Clock()
    node = Node("n1", 7, line, Weather(), clock, 1000)
    node.buffer._waiting = LockedRing(WAITING_BYTES)
    for line.plugged, samples in ((True, SAMPLES // 4), (False, SAMPLES)):
        found = []
        for number in range(SETTLED + samples):
            node.step()
            clock.now += 1000
            if number >= SETTLED and number % EVERY == 0:
                found.append(allocated())
        print(max(found) - min(found), node.buffer.dropped)


main()
