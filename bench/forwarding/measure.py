"""Measures one gateway: at a rate, to a directory, and after an outage."""

import os
import signal
import statistics
import time
from collections.abc import Callable
from pathlib import Path

from bench.forwarding.sensors import Traffic
from bench.harness.brokers import Broker
from bench.harness.processes import processor_seconds, written
from bench.harness.running import LOAD_CORE, Running

LINK_SECONDS = 1.5
"""Until the link is up."""

DRAIN_SECONDS = 30.0
"""How long messages may take that are on their way when the publishers stop."""

FLUSH_SECONDS = 6.0
"""Until everything has landed: a file is closed a few seconds after its first message."""

LIVE_RATE = 100
"""Live messages a second while an outage drains."""

OUTAGE_SECONDS = 120.0


def at_rate(broker: Broker, fleet: Running, rate: int, seconds: float) -> list[str]:
    """Return µs of processor a message, median and p99 delay, bytes written, and messages/s."""
    with Running(broker) as running:
        time.sleep(LINK_SECONDS)
        traffic = Traffic(running.port, fleet.port)
        collector = traffic.collector
        assert collector is not None
        traffic.publish(rate or 1_000, 1.0)  # warm
        _wait(traffic, lambda: len(collector.delays) >= traffic.sent)
        before, had = traffic.sent, len(collector.delays)
        cpu, disk = processor_seconds(running.process), written(running.process)
        begun = time.monotonic()
        payload = traffic.publish(rate, seconds)
        _wait(traffic, lambda: len(collector.delays) >= traffic.sent)
        seconds = time.monotonic() - begun
        cpu = processor_seconds(running.process) - cpu
        disk = written(running.process) - disk
        traffic.close()
    sent, delays = traffic.sent - before, collector.delays[had:]
    return [
        f"{cpu / sent * 1e6:.0f}",
        _delays(delays),
        f"{disk / payload:.2f}",
        f"{sent / seconds:,.0f}{_missing(sent, len(delays))}",
    ]


def to_directory(broker: Broker, rate: int, seconds: float) -> list[str]:
    """Return the same for landing files; bytes written are beside those of the files."""
    with Running(broker) as running:
        time.sleep(LINK_SECONDS)
        traffic = Traffic(running.port, None)
        cpu, disk = processor_seconds(running.process), written(running.process)
        begun = time.monotonic()
        traffic.publish(rate, seconds)
        _wait(traffic, lambda: traffic.acknowledged)
        seconds = time.monotonic() - begun
        time.sleep(FLUSH_SECONDS)
        cpu = processor_seconds(running.process) - cpu
        disk = written(running.process) - disk
        files = list((running.folder / "landing").rglob("*.jsonl"))
        size = sum(file.stat().st_size for file in files)
        lines = sum(_lines(file) for file in files)
        traffic.close()
    return [
        f"{cpu / traffic.sent * 1e6:.0f}",
        "-",
        f"{disk / max(1, size):.2f} of the files",
        f"{traffic.sent / seconds:,.0f}{_missing(traffic.sent, lines)}",
    ]


def outage(broker: Broker, fleet: Running, count: int) -> list[str]:
    """Return how `count` messages of an outage drain while live ones come.

    The fleet's broker is away while they are published. Its session of the collector is not.
    """
    with Running(broker) as running:
        time.sleep(LINK_SECONDS)
        traffic = Traffic(running.port, fleet.port)
        collector = traffic.collector
        assert collector is not None
        collector.socket.close()
        fleet.stop(signal.SIGTERM)  # it keeps its sessions
        traffic.publish(0, OUTAGE_SECONDS, count)
        _wait(traffic, lambda: traffic.acknowledged)
        fleet.start()
        os.sched_setaffinity(fleet.process, {LOAD_CORE})
        collector.connect()
        had = len(collector.stamps)
        while len(collector.stamps) == had:
            traffic.publish(LIVE_RATE, 0.05)
        backlog, cpu, made = traffic.sent, processor_seconds(running.process), time.monotonic_ns()
        begun = time.monotonic()
        while _before(collector.stamps, made) < backlog:
            traffic.publish(LIVE_RATE, 0.2)
            if time.monotonic() - begun > OUTAGE_SECONDS:
                break
        seconds = time.monotonic() - begun
        _wait(traffic, lambda: len(collector.delays) >= traffic.sent)
        cpu = processor_seconds(running.process) - cpu
        pairs = zip(collector.stamps, collector.delays, strict=True)
        live = [delay for stamp, delay in pairs if stamp >= made]
        traffic.close()
    return [
        f"{cpu / traffic.sent * 1e6:.0f}",
        _delays(live),
        "-",
        f"{backlog / seconds:,.0f}{_missing(traffic.sent, len(collector.delays))}",
    ]


def _before(stamps: list[int], made: int) -> int:
    return sum(stamp < made for stamp in stamps)


def _wait(traffic: Traffic, done: Callable[[], bool]) -> None:
    until = time.monotonic() + DRAIN_SECONDS
    while not done() and time.monotonic() < until:
        traffic.read(0.1)


def _delays(delays: list[float]) -> str:
    if len(delays) < 2:
        return "none came"
    return f"{statistics.median(delays):.1f}, {statistics.quantiles(delays, n=100)[98]:.1f}"


def _missing(sent: int, arrived: int) -> str:
    return f", {sent - arrived:,} missing" if arrived < sent else ""


def _lines(file: Path) -> int:
    return file.read_bytes().count(b"\n")
