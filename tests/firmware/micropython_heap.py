"""Prints the memory that a board's program takes, at its start and full, and dropped samples."""

import gc
import sys

TYPE_CHECKING = False  # MicroPython has no typing module
if TYPE_CHECKING:
    from typing import Any

SAMPLES = 4000
PROGRAM = b"\1\0\0\0\0\0\0\0\5count" + bytes.fromhex(
    "0124000515000000000000004006000000000000e03f31"
)
"""payload.value > 21 AND DEADBAND(payload.value, 0.5), for the quantity `count`"""


class Bus:
    """A BME280 that reads nothing: it has no numbers to reckon with."""

    def __init__(self, *_arguments: int, **_settings: int) -> None:
        pass


class Pin:
    OUT = 1

    def __init__(self, number: int, *_settings: int) -> None:
        self.number = number


class Machine:
    I2C = Bus

    Pin = Pin


def allocated() -> int:
    gc.collect()
    used: int = gc.mem_alloc()  # type: ignore[attr-defined]  # MicroPython's
    return used


class Port:
    def read(self) -> bytes:
        return b""

    def write(self, data: bytes) -> int:
        return len(data)


class Weather:
    state = 1

    def read(self) -> "list[tuple[str, tuple[int, int], str]]":
        self.state = self.state * 1103515245 + 12345 & 0x7FFFFFFF
        change = self.state >> 16
        return [
            ("temperature", (2100 + change % 50, -2), "°C"),
            ("humidity", (4800 + change % 80, -2), "%"),
            ("pressure", (101300 + change % 20, -2), "hPa"),
        ]


class Clock:
    now = 0

    def ms(self) -> int:
        return self.now


def main() -> None:
    modules: Any = sys.modules
    modules["machine"] = Machine
    before = allocated()
    import main as program
    from node.board import Board

    settings = {"name": "n1", "sensors": [{"driver": "bme280", "sda": 4, "scl": 5, "address": 118}]}
    clock: Any = Clock()
    node = program.make_node(settings, Port(), clock, Board(25, clock))
    installed = node.install(PROGRAM) == 0
    print(allocated() - before)
    node._sensor = Weather()
    for _ in range(SAMPLES):
        clock.now += 1000
        node._sample(clock.now)
    print(allocated() - before)
    print(node.buffer.dropped if installed else "no filter")


main()
