"""What does it cost to bring a message to the fleet, beside Mosquitto's bridge?

    .venv/bin/python -m bench.forwarding [--seconds 6] [--rates 20 100 1000 0] [--plain-only]
        [--links mqtt mqtts directory] [--outage 100000]

20 sensors with 5 topics each publish at QoS 1 to a gateway, or to a Mosquitto with a bridge (QoS 1,
`cleansession false`), that forwards to another Mosquitto, the fleet's. A subscriber there counts
every message and takes its delay from the publisher's hand. Rate 0 is as fast as 20 windows of 20
messages go. Processor time and bytes written are of the forwarding process alone. `--outage 0`
leaves out the drain of so many messages beside 100 live ones a second.
"""

import argparse
import os
import tempfile
from pathlib import Path

from bench.forwarding.measure import at_rate, outage, to_directory
from bench.forwarding.ways import LINKS, FleetAt, bridge, fleet, gateway, relay
from bench.harness import builds
from bench.harness.machine import describe
from bench.harness.markdown import table
from bench.harness.running import LOAD_CORE, Running
from tests.support.ports import free_port
from tests.support.processes.certificates import Authority

HEAD = [
    "link",
    "messages/s",
    "",
    "CPU a message, µs",
    "delay p50, p99, ms",
    "written / payload",
    "messages/s reached",
]


def main() -> None:
    """Measure and print."""
    arguments = _arguments()
    packages = {"plain": builds.plain()}
    if not arguments.plain_only:
        packages["compiled"] = builds.compiled()
    rows: list[list[str]] = []

    def add(*cells: str) -> None:
        rows.append(list(cells))
        print(cells, flush=True)

    os.sched_setaffinity(0, {LOAD_CORE})
    with tempfile.TemporaryDirectory() as name:
        authority = Authority(Path(name))
        tls_port = free_port()
        with Running(fleet(tls_port, authority.issue("localhost"))) as running:
            os.sched_setaffinity(running.process, {LOAD_CORE})
            at = FleetAt(running.port, tls_port, authority.ca_file)
            for link in arguments.links:
                ways = [gateway(name, package, link, at) for name, package in packages.items()]
                if link != "directory":
                    ways.insert(0, bridge(link, at))
                for rate in arguments.rates:
                    for way in [*ways, *([relay(at)] if link == "mqtt" else [])]:
                        if link == "directory":
                            cells = to_directory(way, rate, arguments.seconds)
                        else:
                            cells = at_rate(way, running, rate, arguments.seconds)
                        add(link, f"{rate:,}" if rate else "all", way.name, *cells)
                if link != "directory" and arguments.outage:
                    for way in ways:
                        cells = outage(way, running, arguments.outage)
                        add(link, f"after {arguments.outage:,}", way.name, *cells)
    print(table(HEAD, rows))
    print(describe())


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--seconds", type=float, default=6.0)
    parser.add_argument("--rates", type=int, nargs="*", default=[20, 100, 1000, 0])
    parser.add_argument("--links", choices=LINKS, nargs="*", default=LINKS)
    parser.add_argument("--outage", type=int, default=100_000)
    parser.add_argument("--plain-only", action="store_true", help="leave out the compiled build")
    return parser.parse_args()


if __name__ == "__main__":
    main()
