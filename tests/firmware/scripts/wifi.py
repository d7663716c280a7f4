"""A node with Wi-Fi whose clock is fast; it measures how much of its memory is taken.

    micropython wifi.py PORT SPEED [FILE]

FILE has the certificate of a broker with TLS.
"""

import gc
import sys
import time

TYPE_CHECKING = False  # MicroPython has no typing module
if TYPE_CHECKING:
    from typing import Any


SPEED = int(sys.argv[2])
JOIN_MS = 10000


def ticks() -> int:
    now: int = time.ticks_ms()  # type: ignore[attr-defined]  # MicroPython's
    return now * SPEED


class WLAN:
    """Takes its time to join, and begins anew when it is asked to meanwhile."""

    def __init__(self, _interface: int) -> None:
        self._begun: int | None = None

    def active(self, _on: bool) -> None:
        pass

    def connect(self, _ssid: str, _password: str) -> None:
        self._begun = ticks()

    def isconnected(self) -> bool:
        return self._begun is not None and ticks() - self._begun >= JOIN_MS


class Network:
    STA_IF = 0
    WLAN = WLAN


class Machine:
    @staticmethod
    def unique_id() -> bytes:
        return b"1"


class Cable:
    def read(self) -> bytes:
        return b""

    def write(self, _data: bytes) -> None:
        pass


class Memory:
    """Measures how much is taken, and how often that was while the node waited for the broker."""

    waits = False
    waited = 0

    def read(self) -> "list[tuple[str, int, str | None]]":
        gc.collect()
        self.waited += self.waits
        return [("waited", self.waited, None), ("memory", gc.mem_alloc(), None)]  # type: ignore[attr-defined]  # MicroPython's


class Clock:
    def __init__(self) -> None:
        self._start = ticks()

    def ms(self) -> int:
        return ticks() - self._start


def main() -> None:
    modules: Any = sys.modules
    modules.update({"network": Network, "machine": Machine})
    from node import start
    from node.loop import Node
    from node.mqtt_port import MqttPort

    broker: Any = {"host": "localhost", "port": int(sys.argv[1]), "username": "n1"}
    settings: Any = {"wifi": {"ssid": "barn", "password": "hay"}, "broker": broker}
    clock = Clock()
    authority = open(sys.argv[3]).read() if len(sys.argv) > 3 else None  # noqa: PTH123, SIM115 - MicroPython
    context = start.tls_context(authority, "/no/clock")
    port = MqttPort("n1", settings, clock, Cable(), context)
    memory = Memory()
    node = Node("n1", 7, port, memory, clock, 1000)

    def idle() -> None:
        memory.waits = True
        node.measure()
        memory.waits = False

    port.idle = idle
    while True:
        time.sleep(min(node.step(), 20) / 1000)


main()
