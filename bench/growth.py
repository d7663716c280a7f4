"""How do cost and memory grow with subscriptions, connections, payload and fan-out?

    .venv/bin/python -m bench.growth [--only mosquitto,tidegate] [--curves fan-out]
        [--short] [--write]

Beside Mosquitto in the same run, MQTT 3.1.1; processor time for each delivered message, and the
resident memory at the end of the traffic.
"""

import argparse
import sys
from collections.abc import Sequence
from dataclasses import dataclass

from bench.harness.brokers import Broker
from bench.harness.errors import MeasurementError
from bench.harness.load import MQTT_3_1_1, Load
from bench.harness.machine import describe
from bench.harness.markdown import README, replace_section, table
from bench.harness.processes import memory, processor
from bench.harness.running import Running
from bench.harness.selection import REFERENCE, USUAL, found, words

SECONDS, SHORT_SECONDS = 2.5, 0.5
WINDOW_BYTES = 4 * 2**20
"""What may be on its way at once: with large payloads the window is fewer messages."""

MIB = 2**20


@dataclass(frozen=True)
class Curve:
    """The generator's options for each point; those of `idle` open connections alone."""

    title: str
    points: tuple[int, ...]
    short: tuple[int, ...]
    options: tuple[str, ...]
    varied: str


CURVES = {
    "subscriptions": Curve(
        "1 to 1 among so many other subscriptions",
        (1_000, 10_000, 100_000, 1_000_000),
        (1_000, 100_000),
        ("--mode", "pair"),
        "--extra-subscriptions",
    ),
    "connections": Curve(
        "so many publishers, a message each on its way, to 1 subscriber of a wildcard",
        (10, 100, 1_000, 10_000),
        (10, 1_000),
        ("--mode", "fanin", "--subscribers", "1"),
        "--publishers",
    ),
    "payload": Curve(
        "1 to 1 with payloads of so many bytes",
        (24, 64, 256, 1_024, 4_096, 16_384, 65_536, 262_144),
        (64, 16_384, 262_144),
        ("--mode", "pair"),
        "--payload",
    ),
    "fan-out": Curve(
        "1 publisher to so many subscribers, for each delivery",
        (1, 10, 100, 1_000),
        (1, 100),
        ("--mode", "fanout"),
        "--subscribers",
    ),
}


@dataclass(frozen=True)
class Point:
    """What one broker took at one point."""

    cpu_us: float
    mib: float
    checked: int
    wrong: int

    def __str__(self) -> str:
        wrong = f", {self.wrong:,} lost or doubled" if self.wrong else ""
        return f"{self.cpu_us:.2f} µs, {self.mib:.0f} MiB{wrong}"


def window(curve: str, size: int) -> int:
    """Return how many messages may be on their way at once."""
    if curve == "payload":
        return max(4, min(1_000, WINDOW_BYTES // size))
    return {"connections": max(1_000, size), "fan-out": max(10, 10_000 // size)}.get(curve, 1_000)


def measure(broker: Broker, curve: str, size: int, seconds: float) -> Point:
    """Start the broker, send it the traffic and stop it."""
    chosen = CURVES[curve]
    options = (*chosen.options, chosen.varied, size, "--window", window(curve, size))
    length = ("--messages", 0, "--max-seconds", seconds)
    with Running(broker) as running, Load(running, MQTT_3_1_1, *options, *length) as load:
        load.ready()
        before = processor(running.process)
        load.begin()
        report = load.result()
        used = processor(running.process).since(before)
        resident = memory(running.process)
    wrong = int(report["lost"]) + report["duplicates"] + report["misrouted"]
    cpu = used.total * 1e6 / max(report["unique"], 1)
    return Point(cpu, resident / MIB, report["expected"], wrong)


def rows(curve: str, brokers: Sequence[Broker], *, short: bool) -> list[list[str]]:
    """Return a line for each point."""
    sizes = CURVES[curve].short if short else CURVES[curve].points
    return [[f"{size:,}", *_cells(curve, size, brokers, short)] for size in sizes]


def _cells(curve: str, size: int, brokers: Sequence[Broker], short: bool) -> list[str]:
    cells = []
    reference = 0.0
    for broker in brokers:
        try:
            point = measure(broker, curve, size, SHORT_SECONDS if short else SECONDS)
        except MeasurementError as error:
            cells.append(str(error))
            continue
        ratio = f" **{point.cpu_us / reference:.3g}**" if reference else ""
        cells.append(f"{point}{ratio}")
        print(f"{curve} {size:,} {broker.name}: {cells[-1]}", flush=True)
        if broker.name == REFERENCE:
            reference = point.cpu_us
    return cells


def main() -> int:
    """Measure the curves, print them and write them where that was asked for."""
    parser = argparse.ArgumentParser(prog="python -m bench.growth", description=__doc__)
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.add_argument("--only", type=words, default=words(USUAL), metavar="A,B")
    parser.add_argument("--curves", type=words, default=list(CURVES), metavar="A,B")
    parser.add_argument("--short", action="store_true", help="fewer points and half a second")
    parser.add_argument("--write", action="store_true", help="the tables into bench/README.md")
    options = parser.parse_args()
    if unknown := [name for name in options.curves if name not in CURVES]:
        parser.error(f"unknown: {', '.join(unknown)}; there are {', '.join(CURVES)}")
    brokers = found(options.only)
    tables = [
        f"{CURVES[curve].title}:\n\n"
        + table([curve, *(b.name for b in brokers)], rows(curve, brokers, short=options.short))
        for curve in options.curves
    ]
    text = f"    .venv/bin/python -m bench.growth {' '.join(sys.argv[1:])}\n\n{describe()}\n\n"
    text += "\n\n".join(tables)
    print(f"\n{text}")
    if options.write:
        replace_section(README, "growth", text)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
