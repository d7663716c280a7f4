"""Prints the memory that a board's program takes, at its start and full, and dropped samples.

    micropython heap.py FOLDER LINK

LINK is usb, mqtt, ble, or by USB: spill, with room on the flash, in FOLDER, and saved, with samples
there that an earlier start has saved.
"""

import gc
import sys

TYPE_CHECKING = False  # MicroPython has no typing module
if TYPE_CHECKING:
    from typing import Any

SAMPLES = 4000
SECOND = 1000
PROGRAM = b"\1\0\0\0\0\0\0\0\5count" + bytes.fromhex(
    "0124000515000000000000004006000000000000e03f31"
)
"""payload.value > 21 AND DEADBAND(payload.value, 0.5), for the quantity `count`"""

LINKS = {
    "usb": {},
    "mqtt": {
        "link": "mqtt",
        "wifi": {"ssid": "barn", "password": "hay hay hay"},
        "broker": {"host": "127.0.0.1", "username": "n1", "password": "a password"},
    },
    "ble": {"link": "ble", "key": "231d39c1d7cc1ab1aee224cd096db932"},
    "spill": {"spill_bytes": 1 << 20},
    "saved": {},
}


class Bus:
    """A BME280 that does not answer: it has no numbers to reckon with."""

    def __init__(self, *_arguments: int, **_settings: int) -> None:
        pass

    def readfrom_mem(self, _address: int, _register: int, _size: int) -> bytes:
        raise OSError(5)


class Pin:
    OUT = 1

    def __init__(self, number: int, *_settings: int) -> None:
        self.number = number

    def value(self, _value: int) -> None:
        pass


class Machine:
    I2C = Bus
    Pin = Pin


class WLAN:
    def __init__(self, _interface: int) -> None:
        pass

    def active(self, _on: bool) -> None:
        pass

    def isconnected(self) -> bool:
        return False

    def connect(self, _ssid: str, _password: str) -> None:
        pass


class Network:
    STA_IF = 0
    WLAN = WLAN


class BLE:
    def active(self, _on: bool) -> None:
        pass

    def config(self, _name: str) -> "tuple[int, bytes]":
        return 0, b"\xa4\xc1\x38\x11\x22\x33"

    def gap_advertise(self, *_arguments: int, **_data: bytes) -> None:
        pass


class Bluetooth:
    BLE = BLE


class MicroPython:
    @staticmethod
    def kbd_intr(_character: int) -> None:
        pass

    @staticmethod
    def const(value: int) -> int:
        return value


def clean(n: int) -> int:
    a = b = c = d = e = f = g = h = 0
    return clean(n - 1) + a + b + c + d + e + f + g + h if n else 0


def allocated() -> int:
    gc.collect()
    clean(40)
    gc.collect()
    used: int = gc.mem_alloc()  # type: ignore[attr-defined]  # MicroPython's
    return used


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
    modules.update({"machine": Machine, "network": Network, "bluetooth": Bluetooth})
    modules["micropython"] = MicroPython
    folder, link = sys.argv[1:]
    before = allocated()
    import main as program
    from node import start
    from node.board import Board
    from node.starts import Starts

    sensor = {"driver": "bme280", "sda": 4, "scl": 5, "address": 118}
    link_settings: Any = LINKS[link]
    settings: Any = dict(link_settings, name="n1", interval_ms=SECOND, sensors=[sensor])
    clock: Any = Clock()
    starts = Starts(folder + "/starts", clock)
    port = start.open_port(settings, clock, folder + "/")
    board = Board(25, clock)
    node = start.make_node(settings, port, clock, board, starts, folder + "/")
    del start, settings
    program.forget_start()
    program.tie(node, port, board, folder + "/")
    installed = node.install(PROGRAM) == 0
    at_start = allocated() - before
    sensors: Any = node._sensor
    node.measure()  # which loads the driver
    if link == "ble":
        sensors = sensors._sensor
    sensors._sensors[0] = Weather()
    for _ in range(SAMPLES):
        clock.now += SECOND
        node.measure()
    print(at_start, allocated() - before)
    print(node.buffer.dropped if installed else "no filter", node.sensor_failures)


main()
