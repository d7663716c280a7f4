"""A node with Wi-Fi whose clock is fast; prints how much memory it had taken, at most.

    micropython micropython_wifi.py PORT SPEED SECONDS [FILE]

FILE has the certificate of a broker with TLS.
"""

import gc
import sys
import time

TYPE_CHECKING = False  # MicroPython has no typing module
if TYPE_CHECKING:
    from typing import Any


class WLAN:
    def __init__(self, _interface: int) -> None:
        pass

    def active(self, _on: bool) -> None:
        pass

    def isconnected(self) -> bool:
        return True


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


class Clock:
    def __init__(self, speed: int) -> None:
        self._speed = speed
        self._start: int = time.ticks_ms()  # type: ignore[attr-defined]  # MicroPython's

    def ms(self) -> int:
        now: int = time.ticks_ms()  # type: ignore[attr-defined]  # MicroPython's
        return (now - self._start) * self._speed


def main() -> None:
    modules: Any = sys.modules
    modules.update({"network": Network, "machine": Machine})
    from node import start
    from node.loop import Node
    from node.mqtt_port import MqttPort
    from node.simulated_sensor import SimulatedSensor

    broker: Any = {"host": "localhost", "port": int(sys.argv[1]), "username": "n1"}
    settings: Any = {"wifi": {"ssid": "barn", "password": "hay"}, "broker": broker}
    clock = Clock(int(sys.argv[2]))
    authority = open(sys.argv[4]).read() if len(sys.argv) > 4 else None  # noqa: PTH123, SIM115 - MicroPython
    context = start.tls_context(authority, "/no/clock")
    port = MqttPort("n1", settings, clock, Cable(), context)
    node = Node("n1", 7, port, SimulatedSensor(), clock, 1000)
    port.idle = node.measure
    most = 0
    end = clock.ms() + 1000 * int(sys.argv[3])
    while clock.ms() < end:
        time.sleep(min(node.step(), 20) / 1000)
        gc.collect()
        most = max(most, gc.mem_alloc())  # type: ignore[attr-defined]  # MicroPython's
    print(most, node.buffer.dropped)


main()
