"""What does it cost to bring a message to the fleet, beside Mosquitto's bridge?

    .venv/bin/python -m bench.forwarding [--seconds 6] [--rates 20 100 1000 0] [--plain-only]

20 sensors with 5 topics each publish at QoS 1 to a gateway, or to a Mosquitto with a bridge (QoS 1,
`cleansession false`), that forwards to another Mosquitto, the fleet's. A subscriber there counts
every message and takes its delay from the publisher's hand. Rate 0 is as fast as 20 windows of 20
messages go. Processor time and bytes written are of the forwarding process alone.
"""

import argparse
import os
import re
import select
import socket
import statistics
import time
from dataclasses import dataclass, field
from pathlib import Path

from bench.harness import builds
from bench.harness.brokers import (
    Broker,
    Keeping,
    configured,
    mosquitto,
    mosquitto_program,
    tidegate,
)
from bench.harness.machine import describe
from bench.harness.markdown import table
from bench.harness.processes import processor_seconds, written
from bench.harness.running import CONNECT, LOAD_CORE, Running

SENSORS, TOPICS, WINDOW = 20, 5, 20
STAMP = re.compile(rb'"stamp":(\d{19})\}')
PUBACK_BYTES = 4
DRAIN_SECONDS = 20.0
BRIDGE = """\
listener {port} 127.0.0.1
allow_anonymous true
user root
persistence true
persistence_location {folder}/
max_queued_messages 0
connection up
address 127.0.0.1:{fleet}
topic # out 1 "" up/
cleansession false
try_private true
"""
GATEWAY = """\
[[listener]]
host = "127.0.0.1"

[gateway]
id = "bench"

[uplink]
url = "mqtt://127.0.0.1:{fleet}"

[[uplink.rule]]
topic = "#"
"""


def bridge(fleet: int) -> Broker:
    """Return a Mosquitto that forwards everything to the fleet's port."""

    def command(port: int, folder: Path, _: Keeping) -> list[str]:
        file = folder / "bridge.conf"
        file.write_text(BRIDGE.format(port=port, folder=folder, fleet=fleet), encoding="utf-8")
        return [mosquitto_program(), "-c", str(file)]

    return Broker("mosquitto's bridge", command)


@dataclass
class Sensor:
    """One connection with its topics; `free` is what its window has room for."""

    index: int
    port: int
    free: int = WINDOW
    sent: int = 0

    def __post_init__(self) -> None:
        self.socket = _connect(self.port, f"sensor{self.index}")

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
            packets += b"\x32" + _length(len(rest)) + rest
            size += len(payload)
        if packets:
            self.socket.sendall(packets)
        self.free -= count
        return size

    def read(self) -> None:
        """Take in PUBACKs."""
        self.free += len(self.socket.recv(65_536)) // PUBACK_BYTES


@dataclass
class Fleet:
    """A subscriber at the fleet's broker."""

    port: int
    delays: list[float] = field(default_factory=list)
    rest: bytes = b""

    def __post_init__(self) -> None:
        self.socket = _connect(self.port, "collector")
        self.socket.sendall(b"\x82\x06\x00\x01\x00\x01#\x00")
        self.socket.recv(5)

    def read(self) -> None:
        """Take in messages; a stamp that was cut is read with the next bytes."""
        data = self.rest + self.socket.recv(1 << 20)
        now, end = time.monotonic_ns(), 0
        for found in STAMP.finditer(data):
            self.delays.append((now - int(found[1])) / 1e6)
            end = found.end()
        self.rest = data[max(end, len(data) - 64) :]


def _connect(port: int, name: str) -> socket.socket:
    sock = socket.create_connection(("127.0.0.1", port), 5)
    sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    identifier = name.encode()
    rest = CONNECT[2:-7] + len(identifier).to_bytes(2, "big") + identifier
    sock.sendall(b"\x10" + bytes([len(rest)]) + rest)
    sock.recv(4)
    return sock


def _length(value: int) -> bytes:
    return bytes([value]) if value < 128 else bytes([value % 128 | 128, value // 128])


def measure(broker: Broker, fleet: Running, rate: int, seconds: float) -> list[str]:
    """Return the cells of one broker at one rate."""
    with Running(broker) as running:
        time.sleep(1.5)  # its link comes up
        sensors = [Sensor(index, running.port) for index in range(SENSORS)]
        collector = Fleet(fleet.port)
        _drive(sensors, collector, rate or 1_000, 1.0)  # warm
        _wait(sensors, collector, sum(sensor.sent for sensor in sensors))
        before = sum(sensor.sent for sensor in sensors)
        collector.delays.clear()
        cpu, disk = processor_seconds(running.process), written(running.process)
        begun = time.monotonic()
        payload = _drive(sensors, collector, rate, seconds)
        sent = sum(sensor.sent for sensor in sensors) - before
        _wait(sensors, collector, sent)
        took = time.monotonic() - begun
        cpu = processor_seconds(running.process) - cpu
        disk = written(running.process) - disk
        collector.socket.close()
        for sensor in sensors:
            sensor.socket.close()
    arrived = len(collector.delays)
    lost = f", {sent - arrived} missing" if arrived < sent else ""
    return [
        f"{cpu / sent * 1e6:.0f}",
        f"{statistics.median(collector.delays):.2f}",
        f"{disk / payload:.2f}",
        f"{sent / took:,.0f}{lost}",
    ]


def _drive(sensors: list[Sensor], collector: Fleet, rate: int, seconds: float) -> int:
    """Publish for so long; return the bytes of all payloads."""
    begun, published, size = time.monotonic(), 0, 0
    while (elapsed := time.monotonic() - begun) < seconds:
        if rate:
            due = int(elapsed * rate)
            while published < due:
                size += sensors[published % SENSORS].publish(1)
                published += 1
            wait = (published + 1) / rate - (time.monotonic() - begun)
        else:
            for sensor in sensors:
                size += sensor.publish(WINDOW) if sensor.free else 0
            wait = 0.1
        _read(sensors, collector, max(0.0, wait))
    return size


def _read(sensors: list[Sensor], collector: Fleet, wait: float) -> None:
    by_socket: dict[socket.socket, Sensor | Fleet] = {each.socket: each for each in sensors}
    by_socket[collector.socket] = collector
    for sock in select.select(list(by_socket), [], [], wait)[0]:
        by_socket[sock].read()


def _wait(sensors: list[Sensor], collector: Fleet, expected: int) -> None:
    until = time.monotonic() + DRAIN_SECONDS
    while len(collector.delays) < expected and time.monotonic() < until:
        _read(sensors, collector, 0.1)


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--seconds", type=float, default=6.0)
    parser.add_argument("--rates", type=int, nargs="*", default=[20, 100, 1000, 0])
    parser.add_argument("--plain-only", action="store_true", help="leave out the compiled build")
    arguments = parser.parse_args()
    folders = {"plain": builds.plain()}
    if not arguments.plain_only:
        folders["compiled"] = builds.compiled()
    rows = []
    os.sched_setaffinity(0, {LOAD_CORE})
    with Running(mosquitto(), Keeping.UNBOUNDED) as fleet:
        os.sched_setaffinity(fleet.process, {LOAD_CORE})
        config = GATEWAY.format(fleet=fleet.port)
        brokers = [bridge(fleet.port)]
        brokers += [configured(tidegate(name, folder), config) for name, folder in folders.items()]
        for rate in arguments.rates:
            for broker in brokers:
                cells = measure(broker, fleet, rate, arguments.seconds)
                rows.append([f"{rate:,}" if rate else "all", broker.name, *cells])
                print(rows[-1], flush=True)
    head = ["messages/s", "", "CPU, µs", "median delay, ms", "written / payload", "messages/s"]
    print(table(head, rows))
    print(describe())


if __name__ == "__main__":
    main()
