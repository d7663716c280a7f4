"""What a bystander and the gateway's memory see of an attack."""

import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from tests.support.processes.gateway_process import GatewayProcess

LOOK = 0.02
"""Seconds between two looks at the memory."""


@dataclass
class Seen:
    """How long the bystander waited at most, and what the gateway occupied at most."""

    answers: int = 0
    slowest_ms: float = 0.0
    before_mib: float = 0.0
    most_mib: float = 0.0


@contextmanager
def bystander(gateway: GatewayProcess) -> Iterator[Seen]:
    """Watch the gateway while the block runs; what is given says at its end what was seen."""
    seen = Seen(before_mib=gateway.memory() / 1024)
    seen.most_mib = seen.before_mib
    over = threading.Event()

    def look() -> None:
        while not over.wait(LOOK):
            seen.most_mib = max(seen.most_mib, gateway.memory() / 1024)

    watcher = threading.Thread(target=look)
    with subprocess.Popen(
        [sys.executable, "-m", "tests.hostile.bystander", str(gateway.port)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n", gateway.log()
        watcher.start()
        try:
            yield seen
        finally:
            over.set()
            watcher.join()
            process.stdin.close()
            answers, slowest = process.stdout.readline().split()
    seen.answers, seen.slowest_ms = int(answers), float(slowest)
