"""Where does the time go in a scenario of `bench.side_by_side` or a kind of `bench.real_traffic`?

    .venv/bin/python -m bench.hot_spots [--with cprofile,perf,strace] [--build plain|compiled]
        [--mqtt 4|5] [--seconds S] [--top N] qos0 qos1 A C ...

Prints, for each scenario, the functions in which the most time is spent: Python's by cProfile, C's
and the kernel's by perf, and by strace how many system calls a message takes. Each is a run of its
own, and each slows the gateway down: shares are what counts, not times.
"""

import argparse
import io
import pstats
import re
import signal
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from bench.harness import builds
from bench.harness.brokers import Broker, Keeping, tidegate
from bench.harness.figures import METRICS, Figures, write
from bench.harness.load import MQTT_3_1_1, MQTT_5
from bench.harness.scenario import Settings
from bench.harness.selection import words
from bench.real_traffic.kinds import KINDS as TRAFFIC
from bench.side_by_side.scenarios import SCENARIOS

PROFILED = {name: scenario for name, scenario in SCENARIOS.items() if "cpu_us" in scenario.shown}
PROFILED |= TRAFFIC

START_SECONDS = 1.0
"""The first of a process, which go into its start and are left out."""

CALLS = "%network,epoll_wait,epoll_pwait,epoll_pwait2,epoll_ctl,futex,pwrite64,fdatasync,fsync"
"""System calls that are counted: few others come after the start."""

Wrap = Callable[[list[str], Path], list[str]]
"""A command and the file for the profile: the command that profiles it."""


def _cprofile(command: list[str], file: Path) -> list[str]:
    statements = f"""
import cProfile, signal
from gateway.cli.main import main
profile = cProfile.Profile()
signal.signal(signal.SIGALRM, lambda *_: profile.enable())
signal.setitimer(signal.ITIMER_REAL, {START_SECONDS})
try:
    main()
finally:
    profile.disable()
    profile.dump_stats({str(file)!r})
"""
    return [command[0], "-c", statements, *command[3:]]


def _perf(command: list[str], file: Path) -> list[str]:
    delay = str(round(START_SECONDS * 1000))
    return ["perf", "record", "--delay", delay, "-F", "997", "-o", str(file), "--", *command]


def _strace(command: list[str], file: Path) -> list[str]:
    return ["strace", "-f", "-c", "-e", f"trace={CALLS}", "-o", str(file), "--", *command]


def _show_cprofile(file: Path, top: int, _: Figures) -> str:
    """Return the shares of modules and of system calls, then the times of single functions."""
    text = io.StringIO()
    stats = pstats.Stats(str(file), stream=text)
    shares: Counter[str] = Counter()
    for (path, line, name), times in stats.stats.items():  # type: ignore[attr-defined]  # typeshed
        if "'poll' of" not in name:  # that is mostly waiting
            shares["/".join(Path(path).parts[-2:]) if line else name] += times[2]
    whole = sum(shares.values())
    parts = [f"{share / whole:7.1%}  {name}" for name, share in shares.most_common(top // 2)]
    stats.strip_dirs().sort_stats("tottime").print_stats(top)
    lines = text.getvalue().splitlines()
    begin = next(number for number, line in enumerate(lines) if "ncalls" in line)
    return "\n".join([*parts, "", *lines[begin:]]).rstrip()


def _show_perf(file: Path, top: int, _: Figures) -> str:
    """Return the shares of libraries and the kernel, then those of single functions."""
    parts = []
    for sort in (["dso"], ["dso", "symbol"]):
        command = ["perf", "report", "-i", str(file), "--stdio", "-g", "none"]
        command += ["--no-children", "--sort", ",".join(sort)]
        done = subprocess.run(command, capture_output=True, text=True, check=True)
        lines = [line for line in done.stdout.splitlines() if line.strip() and line[0] != "#"]
        parts.append("\n".join(lines[: top // 3 if len(sort) == 1 else top]))
    return "\n\n".join(parts)


def _show_strace(file: Path, top: int, figures: Figures) -> str:
    calls = [
        (int(found[1]), found[2])
        for found in re.finditer(
            r"^\s*[\d.]+\s+[\d.]+\s+\d+\s+(\d+)\s+(?:\d+\s+)?(\w+)$", file.read_text(), re.MULTILINE
        )
    ]
    messages = figures["checked"]
    return "\n".join(
        f"{count / messages:10.4f} a message  {name}"
        for count, name in sorted(calls, reverse=True)[:top]
        if name != "total"
    )


KINDS: dict[str, tuple[Wrap, Callable[[Path, int, Figures], str]]] = {
    "cprofile": (_cprofile, _show_cprofile),
    "perf": (_perf, _show_perf),
    "strace": (_strace, _show_strace),
}


def profile(kind: str, scenario: str, broker: Broker, settings: Settings, top: int) -> str:
    """Run the scenario with the broker in a profiler; return what it shows.

    Where a scenario starts the broker several times it is the last time that counts.
    """
    wrap, show = KINDS[kind]
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "profile"

        def command(port: int, data: Path, keeping: Keeping) -> list[str]:
            return wrap(broker.command(port, data, keeping), file)

        profiled = replace(broker, command=command, end=signal.SIGTERM)
        figures = PROFILED[scenario].measure(profiled, settings)
        cost = PROFILED[scenario].shown[0]
        head = f"{scenario}, {kind}, {figures['checked']:,.0f} messages"
        cost = f"{METRICS[cost].title} {write(cost, figures[cost])}"
        return f"{head}, {cost}:\n{show(file, top, figures)}\n"


def main() -> int:
    """Print the profiles that were asked for."""
    parser = argparse.ArgumentParser(prog="python -m bench.hot_spots", description=__doc__)
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.add_argument("scenarios", nargs="+", choices=PROFILED, metavar="SCENARIO")
    parser.add_argument("--with", dest="kinds", type=words, default=["cprofile"])
    parser.add_argument("--build", choices=("plain", "compiled"), default="plain")
    parser.add_argument("--mqtt", type=int, choices=(MQTT_3_1_1, MQTT_5), default=MQTT_3_1_1)
    parser.add_argument("--seconds", type=float, default=2.0)
    parser.add_argument("--top", type=int, default=20)
    options = parser.parse_args()
    if unknown := [kind for kind in options.kinds if kind not in KINDS]:
        parser.error(f"unknown: {', '.join(unknown)}; there are {', '.join(KINDS)}")
    folder = builds.plain() if options.build == "plain" else builds.compiled()
    broker = tidegate(options.build, folder)
    settings = Settings(options.mqtt, options.seconds)
    for scenario in options.scenarios:
        for kind in options.kinds:
            print(profile(kind, scenario, broker, settings, options.top), flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
