"""Does a gateway keep anything of clients that are gone?

    .venv/bin/python -m bench.soak [CONNECTS] [--build plain|compiled] [--mqtt 4|5] [--write]

CONNECTS clients (1,000,000), 64 at a time, connect under a name of their own, subscribe to a topic
of their own, publish to it with QoS 1, get their message and go, one of eight without DISCONNECT.
The resident memory is taken at the start, after a hundredth of them, and at the end. Exits with 1
when the end is more than 5 % above the start of the count, or when a message did not arrive.
"""

import argparse
import sys
import time
from typing import Any, NamedTuple

from bench.harness import builds
from bench.harness.brokers import tidegate
from bench.harness.load import Load
from bench.harness.machine import describe
from bench.harness.markdown import README, replace_section, table
from bench.harness.processes import processor, settled_memory
from bench.harness.running import Running

CONNECTS = 1_000_000
PARTS = 10
AT_ONCE = 64
MOST_GROWTH = 0.05
SECONDS = 3600.0
MIB = 2**20


class Point(NamedTuple):
    """What was seen after so many connects."""

    connects: int
    mib: float
    cpu_us: float
    """Microseconds of processor for each connect of this part."""

    wrong: int
    """Messages that were lost, doubled or misled, and connections that broke."""


def churn(running: Running, version: int, connects: int) -> dict[str, Any]:
    """Let so many clients come and go; return what the generator counted."""
    options = ("--mode", "churn", "--messages", connects, "--parallel", AT_ONCE)
    with Load(running, version, *options, seconds=SECONDS) as load:
        load.ready()
        load.begin()
        return load.result()


def wrong(report: dict[str, Any], connects: int) -> int:
    """Return how much did not go as it should."""
    counted = ("broken", "lost", "duplicates", "misrouted")
    return sum(int(report[name]) for name in counted) + connects - int(report["cycles"])


def soak(running: Running, version: int, connects: int) -> list[Point]:
    """Return the start, the end of a hundredth, and the ends of ten equal parts."""
    points = [Point(0, settled_memory(running.process) / MIB, 0.0, 0)]
    parts = [connects // 100, *[connects // PARTS] * PARTS]
    for part in parts:
        before = processor(running.process)
        report = churn(running, version, part)
        used = processor(running.process).since(before).total
        mib = settled_memory(running.process) / MIB
        done = points[-1].connects + part
        points.append(Point(done, mib, used * 1e6 / part, wrong(report, part)))
        print(f"{done:>9,} connects: {mib:.2f} MiB", flush=True)
    return points


def growth(points: list[Point]) -> float:
    """Return by how much the memory grew between a hundredth and the end, 0.05 for 5 %."""
    return points[-1].mib / points[1].mib - 1


def report(points: list[Point]) -> str:
    """Return the table."""
    rows = [
        [f"{p.connects:,}", f"{p.mib:.2f}", f"{p.cpu_us:.0f}" if p.connects else "", str(p.wrong)]
        for p in points
    ]
    return table(["connects so far", "resident MiB", "CPU, µs each", "lost or wrong"], rows)


def main() -> int:
    """Return 1 when memory grew or a message did not arrive."""
    parser = argparse.ArgumentParser(prog="python -m bench.soak", description=__doc__)
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.add_argument("connects", type=int, nargs="?", default=CONNECTS)
    parser.add_argument("--build", choices=("plain", "compiled"), default="plain")
    parser.add_argument("--mqtt", type=int, choices=(4, 5), default=4)
    parser.add_argument("--write", action="store_true", help="the table into bench/README.md")
    options = parser.parse_args()
    if options.connects < 100 * AT_ONCE:
        parser.error(f"CONNECTS is {options.connects}; at least {100 * AT_ONCE}")
    folder = builds.plain() if options.build == "plain" else builds.compiled()
    begun = time.monotonic()
    with Running(tidegate(options.build, folder)) as running:
        points = soak(running, options.mqtt, options.connects)
    whole = points[-1].mib / points[0].mib - 1
    text = (
        f"{table_head(options)}\n\n{report(points)}\n\n"
        f"{growth(points):+.1%} since the first hundredth, {whole:+.1%} since the start; "
        f"{time.monotonic() - begun:.0f} s."
    )
    print(f"\n{text}")
    if options.write:
        replace_section(README, "soak", text)
    return int(growth(points) > MOST_GROWTH or any(point.wrong for point in points))


def table_head(options: argparse.Namespace) -> str:
    """Return the command, and what it ran on."""
    command = f"    .venv/bin/python -m bench.soak {' '.join(sys.argv[1:])}"
    return f"{command}\n\n{describe()} Tidegate's {options.build} build."


if __name__ == "__main__":
    raise SystemExit(main())
