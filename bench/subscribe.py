"""How much CPU does a client take that subscribes to 10,000 topic filters?

    .venv/bin/python -m bench.subscribe [--tree NAME=PATH]...

Starts a broker for each cell, and reads the CPU of its process before the first SUBSCRIBE and after
the last SUBACK. A tree that has compiled modules in place is measured compiled.
"""

import argparse
import subprocess
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from bench.harness.processes import processor_seconds
from bench.instructions import ROOT, Client, await_port, gateway, mosquitto
from gateway.mqtt.codec.packet_codec import encode
from gateway.mqtt.packets import MQTT_3_1_1, Subscribe, SubscriptionRequest
from tests.support.ports import free_port

FILTERS = 10_000
SETTLED = 2.0
"""Seconds after the port opens until the start is over."""


class Way(NamedTuple):
    """Filters in a packet, and packets that are sent before a SUBACK is read."""

    filters: int
    packets: int
    clean: bool = True


WAYS = {
    "100 filters a packet": Way(100, 1),
    "a filter a packet, 50 packets at once": Way(1, 50),
    "100 filters a packet, of a persistent session": Way(100, 1, clean=False),
}


def subscribe(client: Client, way: Way) -> None:
    """Subscribe to all filters and await each SUBACK."""
    packets = [
        encode(Subscribe(1, requests(range(first, first + way.filters))), MQTT_3_1_1)
        for first in range(0, FILTERS, way.filters)
    ]
    for first in range(0, len(packets), way.packets):
        some = packets[first : first + way.packets]
        client.write(b"".join(some))
        for _ in some:
            assert client.receive()[0] == 0x90


def requests(numbers: Sequence[int]) -> list[SubscriptionRequest]:
    """Return a request for a filter of seven levels for each number."""
    return [SubscriptionRequest(f"site/{n % 7}/floor/{n % 13}/dev/{n}/state", 1) for n in numbers]


def measure(tree: Path | None, way: Way) -> float:
    """Return the µs of CPU for each filter."""
    with tempfile.TemporaryDirectory() as name:
        folder, port = Path(name), free_port()
        run = mosquitto(folder, port, 0) if tree is None else gateway(tree, folder, port, 0)
        command, environment = run
        quiet = subprocess.DEVNULL
        with subprocess.Popen(command, env=environment, stdout=quiet, stderr=quiet) as process:
            try:
                await_port(process, port)
                time.sleep(SETTLED)
                client = Client(port, "subscriber", clean=way.clean)
                before = processor_seconds(process.pid)
                subscribe(client, way)
                return 1_000_000 * (processor_seconds(process.pid) - before) / FILTERS
            finally:
                process.kill()


def main() -> None:
    """Print a row for each way to subscribe."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--tree", action="append", default=[], metavar="NAME=PATH")
    given = [each.partition("=")[::2] for each in parser.parse_args().tree]
    trees = {name: Path(path) for name, path in given} or {"tidegate": ROOT}
    brokers: dict[str, Path | None] = {"mosquitto": None, **trees}
    print("| | " + " | ".join(brokers) + " |\n| --- |" + " --: |" * len(brokers))
    for name, way in WAYS.items():
        figures = [f"{measure(tree, way):.0f}" for tree in brokers.values()]
        print(f"| {name} | " + " | ".join(figures) + " |", flush=True)


if __name__ == "__main__":
    main()
