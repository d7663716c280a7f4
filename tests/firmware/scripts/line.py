"""Runs a node under MicroPython: its serial line is standard input and output."""

import os
import select
import sys
import time

from node.loop import Node
from node.programs import Programs
from node.simulated_sensor import SimulatedSensor
from node.uptime import Uptime


class Port:
    def __init__(self) -> None:
        self._ready = select.poll()
        self._ready.register(sys.stdin, select.POLLIN)

    def read(self) -> bytes:
        heard = b""
        while self._ready.poll(0):
            heard += sys.stdin.buffer.read(1)
        return heard

    def write(self, data: bytes) -> None:
        sys.stdout.buffer.write(data)


class Board:
    def identify(self, seconds: int) -> None:
        print("identify", seconds, file=sys.stderr)

    def restart(self) -> None:
        sys.exit(3)


boot = int.from_bytes(os.urandom(4), "little")
node = Node(
    "mp1",
    boot,
    Port(),
    SimulatedSensor(),
    Uptime(),
    interval_ms=50,
    resend_ms=200,
    board=Board(),
    programs=Programs(sys.argv[1]) if len(sys.argv) > 1 else None,
)
while True:
    time.sleep(min(node.step(), 10) / 1000)
