"""20 sensors that publish at QoS 1 within a window, and a subscriber at the fleet's broker."""

import re
import select
import socket
import time
from dataclasses import dataclass, field

from bench.harness.running import CONNECT

SENSORS, TOPICS, WINDOW = 20, 5, 20
PUBACK_BYTES = 4
_STAMP = re.compile(rb'"stamp":(\d{19})\}')
_STAMP_BYTES = 64
"""Enough for a stamp that was cut at the end of a read."""


@dataclass
class Sensor:
    """One connection with its topics; `free` is what its window has room for."""

    index: int
    port: int
    free: int = WINDOW
    sent: int = 0

    def __post_init__(self) -> None:
        self.socket = connect(self.port, f"sensor{self.index}")

    def publish(self, count: int) -> int:
        """Publish so many messages, as far as the window has room; return the payload's bytes."""
        count = min(count, self.free)
        packets, size = b"", 0
        for _ in range(count):
            self.sent += 1
            topic = b"sensors/n%d/quantity%d" % (self.index, self.sent % TOPICS)
            stamp = time.monotonic_ns()
            body = b'{"value":%.2f,"unit":"C","time":%d,"stamp":%019d}'
            payload = body % (20 + self.sent % 1000 / 100, 1_763_740_000_000 + self.sent, stamp)
            identifier = (self.sent % 65_535 + 1).to_bytes(2, "big")
            rest = len(topic).to_bytes(2, "big") + topic + identifier + payload
            packets += b"\x32" + encoded_length(len(rest)) + rest
            size += len(payload)
        if packets:
            self.socket.sendall(packets)
        self.free -= count
        return size

    def read(self) -> None:
        """Take in PUBACKs."""
        self.free += len(self.socket.recv(65_536)) // PUBACK_BYTES


@dataclass
class Collector:
    """A subscriber at the fleet's broker.

    `stamps` are when messages were made (ns of the monotonic clock), `delays` how many ms later
    they came here.
    """

    port: int
    stamps: list[int] = field(default_factory=list)
    delays: list[float] = field(default_factory=list)
    rest: bytes = b""

    def __post_init__(self) -> None:
        self.connect()
        self.socket.sendall(b"\x82\x06\x00\x01\x00\x01#\x00")
        self.socket.recv(5)

    def connect(self) -> None:
        """Connect, or connect again to the session of before, which has got what came meanwhile."""
        self.socket = connect(self.port, "collector", clean=False)
        self.rest = b""

    def leave(self) -> None:
        """End the session."""
        self.socket.close()
        connect(self.port, "collector").close()

    def read(self) -> None:
        """Take in messages; a stamp that was cut is read with the next bytes."""
        data = self.rest + self.socket.recv(1 << 20)
        now, end = time.monotonic_ns(), 0
        for found in _STAMP.finditer(data):
            made = int(found[1])
            self.stamps.append(made)
            self.delays.append((now - made) / 1e6)
            end = found.end()
        self.rest = data[max(end, len(data) - _STAMP_BYTES) :]


class Traffic:
    """All sensors of one gateway, and the collector if its messages go to a broker."""

    def __init__(self, port: int, fleet_port: int | None) -> None:
        self.sensors = [Sensor(index, port) for index in range(SENSORS)]
        self.collector = None if fleet_port is None else Collector(fleet_port)

    @property
    def sent(self) -> int:
        """How many messages were published."""
        return sum(sensor.sent for sensor in self.sensors)

    @property
    def acknowledged(self) -> bool:
        """Whether every message has its PUBACK."""
        return all(sensor.free == WINDOW for sensor in self.sensors)

    def publish(self, rate: int, seconds: float, most: int | None = None) -> int:
        """Publish for so long, or `most` messages; return the bytes of all payloads.

        A rate of 0 is as fast as the windows go.
        """
        begun, first, size = time.monotonic(), self.sent, 0
        while (elapsed := time.monotonic() - begun) < seconds:
            published = self.sent - first
            if most is not None and published >= most:
                break
            if rate:
                for number in range(published, int(elapsed * rate)):
                    size += self.sensors[number % SENSORS].publish(1)
                wait = (self.sent - first + 1) / rate - (time.monotonic() - begun)
            else:
                size += sum(sensor.publish(WINDOW) for sensor in self.sensors)
                wait = 0.1
            self.read(max(0.0, wait))
        return size

    def read(self, wait: float) -> None:
        """Take in what has come, or comes within so many seconds."""
        by_socket: dict[socket.socket, Sensor | Collector] = {
            each.socket: each for each in self.sensors
        }
        if self.collector is not None:
            by_socket[self.collector.socket] = self.collector
        for sock in select.select([each for each in by_socket if each.fileno() >= 0], [], [], wait)[
            0
        ]:
            by_socket[sock].read()

    def close(self) -> None:
        """End all connections."""
        for each in self.sensors:
            each.socket.close()
        if self.collector is not None:
            self.collector.leave()


def connect(port: int, name: str, *, clean: bool = True) -> socket.socket:
    sock = socket.create_connection(("127.0.0.1", port), 5)
    sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    identifier = name.encode()
    rest = (
        CONNECT[2:9]
        + bytes([clean << 1])
        + CONNECT[10:-7]
        + len(identifier).to_bytes(2, "big")
        + identifier
    )
    sock.sendall(b"\x10" + bytes([len(rest)]) + rest)
    sock.recv(4)
    return sock


def encoded_length(value: int) -> bytes:
    return bytes([value]) if value < 128 else bytes([value % 128 | 128, value // 128])
