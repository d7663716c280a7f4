"""What does it save to hold messages, and how long are they held?

    .venv/bin/python -m bench.delivery [--seconds 5] [--rates 100 2000 50000] [--plain-only]

Ten publishers send at QoS 0 to topics in turn, with payloads of 20 to 200 bytes, and each of ten
subscribers gets every tenth topic. A gateway for each delivery policy forwards them, all in one
run. perf counts its system calls; the delay is taken by the subscriber from the publisher's hand,
and every delivery is counted.
"""

import argparse
import os
import re
import select
import statistics
import subprocess
import time

from bench.forwarding.sensors import connect, encoded_length
from bench.harness import brokers, builds
from bench.harness.machine import describe
from bench.harness.markdown import table
from bench.harness.processes import processor_seconds
from bench.harness.running import LOAD_CORE, Running

CLIENTS = 10
TOPICS = 100
SIZES = [20 + 23 * number % 180 for number in range(60)]

POLICIES = {
    "each": "",
    "buffered, 5 messages, 200 ms": '[delivery.device]\npolicy = "buffered"\n',
    "buffered, 50 messages, 20 ms": (
        '[delivery.device]\npolicy = "buffered"\nbuffered_count = 50\nidle_flush = 20\n'
    ),
}

_STAMP = re.compile(rb"@(\d{19})")
_STAMP_BYTES = 32
"""Enough for a stamp that was cut at the end of a read."""

DRAIN_SECONDS = 2.0
"""How long messages may take that are on their way when the publishers stop."""

EVENTS = "syscalls:sys_enter_sendto,raw_syscalls:sys_enter"
"""The writes to sockets, and all system calls: at high rates most of them ask whether more came."""

HEAD = [
    "messages/s",
    "",
    "policy",
    "writes, system calls a message",
    "CPU a message, µs",
    "delay p50, p99, ms",
]


class Subscribers:
    """Ten connections; `delays` are the milliseconds of all messages that came."""

    def __init__(self, port: int) -> None:
        self.sockets = [connect(port, f"subscriber{number}") for number in range(CLIENTS)]
        for number, sock in enumerate(self.sockets):
            topic_filter = b"s/%d/+" % number
            rest = b"\0\1" + len(topic_filter).to_bytes(2, "big") + topic_filter + b"\0"
            sock.sendall(b"\x82" + encoded_length(len(rest)) + rest)
            sock.recv(5)
        self.delays: list[float] = []
        self._rest = dict.fromkeys(self.sockets, b"")

    def read(self, wait: float) -> None:
        """Take in what has come, or comes within so many seconds."""
        for sock in select.select(self.sockets, [], [], wait)[0]:
            data = self._rest[sock] + sock.recv(1 << 20)
            now, end = time.monotonic_ns(), 0
            for found in _STAMP.finditer(data):
                self.delays.append((now - int(found[1])) / 1e6)
                end = found.end()
            self._rest[sock] = data[max(end, len(data) - _STAMP_BYTES) :]


class Publishers:
    """Ten connections that publish at a rate, due at fixed times."""

    def __init__(self, port: int) -> None:
        self.sockets = [connect(port, f"publisher{number}") for number in range(CLIENTS)]
        self.sent = 0

    def publish(self, count: int) -> None:
        """Publish so many messages, each connection its share in one write."""
        packets: list[list[bytes]] = [[] for _ in self.sockets]
        for _ in range(count):
            number, self.sent = self.sent % TOPICS, self.sent + 1
            topic = b"s/%d/%d" % (number % CLIENTS, number)
            size = SIZES[self.sent % len(SIZES)]
            payload = b"@%019d" % time.monotonic_ns() + b"x" * (size - 20)
            rest = len(topic).to_bytes(2, "big") + topic + payload
            packets[self.sent // 3 % CLIENTS].append(b"\x30" + encoded_length(len(rest)) + rest)
        for sock, some in zip(self.sockets, packets, strict=True):
            if some:
                sock.sendall(b"".join(some))


def main() -> None:
    """Measure and print."""
    arguments = _arguments()
    packages = {"plain": builds.plain()}
    if not arguments.plain_only:
        packages["compiled"] = builds.compiled()
    rows: list[list[str]] = []
    os.sched_setaffinity(0, {LOAD_CORE})
    for rate in arguments.rates:
        for build, package in packages.items():
            for policy, text in POLICIES.items():
                broker = brokers.configured(brokers.tidegate(build, package), text)
                cells = _measure(broker, rate, arguments.seconds)
                rows.append([f"{rate:,}", build, policy, *cells])
                print(rows[-1], flush=True)
    print(table(HEAD, rows))
    print(describe())


def _measure(broker: brokers.Broker, rate: int, seconds: float) -> list[str]:
    with Running(broker) as running:
        subscribers, publishers = Subscribers(running.port), Publishers(running.port)
        _run(publishers, subscribers, rate, 0.5)
        subscribers.delays.clear()
        first = publishers.sent
        calls = subprocess.Popen(
            ["perf", "stat", "-x", ",", "-e", EVENTS, "-p", str(running.process)],
            stderr=subprocess.PIPE,
            text=True,
        )
        time.sleep(0.5)
        before = processor_seconds(running.process)
        _run(publishers, subscribers, rate, seconds)
        used = processor_seconds(running.process) - before
        calls.send_signal(2)
        counts = [int(line.partition(",")[0]) for line in calls.communicate()[1].splitlines()]
        sent, delays = publishers.sent - first, sorted(subscribers.delays)
        lost = f", {sent - len(delays):,} lost" if sent != len(delays) else ""
        p50, p99 = statistics.median(delays), delays[len(delays) * 99 // 100]
        return [
            f"{counts[0] / sent:.2f}, {counts[1] / sent:.2f}",
            f"{used / sent * 1e6:.1f}",
            f"{p50:.1f}, {p99:.1f}{lost}",
        ]


def _run(publishers: Publishers, subscribers: Subscribers, rate: int, seconds: float) -> None:
    """Publish for so long, and wait until everything has come."""
    begun, first, received = time.monotonic(), publishers.sent, len(subscribers.delays)
    while (elapsed := time.monotonic() - begun) < seconds:
        publishers.publish(int(elapsed * rate) - (publishers.sent - first))
        due = (publishers.sent - first + 1) / rate - (time.monotonic() - begun)
        subscribers.read(max(0.0, min(due, 0.001 if rate > 1000 else due)))
    until = time.monotonic() + DRAIN_SECONDS
    while len(subscribers.delays) - received < publishers.sent - first:
        if time.monotonic() > until:
            return
        subscribers.read(0.05)


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--seconds", type=float, default=5.0)
    parser.add_argument("--rates", type=int, nargs="*", default=[100, 2000, 50_000])
    parser.add_argument("--plain-only", action="store_true")
    return parser.parse_args()


if __name__ == "__main__":
    main()
