"""How much memory does a gateway hold on which nothing happens?

    .venv/bin/python -m bench.idle_memory [STARTS]

Starts a gateway as a user does, so many times for each configuration (3 by default), and prints
the median of what it holds once that has stopped moving, and what of it no other process can share.
"""

import statistics
import sys
import tempfile
from pathlib import Path

from bench.harness.processes import private_memory, settled_memory
from gateway.compiled import build
from tests.support.ports import free_port
from tests.support.processes.gateway_process import GatewayProcess

MIB = 1024 * 1024

CONFIGURATIONS = {
    "no configuration": None,
    "an uplink, `mqtt://`": "[gateway]\nid = 'bench'\n[uplink]\nurl = 'mqtt://127.0.0.1:{port}'\n",
    "an uplink, `mqtts://`": "[gateway]\nid = 'bench'\n[uplink]\nurl = 'mqtts://127.0.0.1:{port}'\n",
}


def measure(config: str | None) -> tuple[float, float]:
    """Return the MiB of a gateway with this configuration, and what of them is its alone."""
    with tempfile.TemporaryDirectory() as name:
        text = None if config is None else config.format(port=free_port())
        gateway = GatewayProcess(Path(name), text).start(anew=True)
        try:
            assert gateway.process is not None
            process = gateway.process.pid
            return settled_memory(process) / MIB, private_memory(process) / MIB
        finally:
            gateway.kill()


def main() -> None:
    starts = int(sys.argv[1]) if len(sys.argv) > 1 else 3
    print(f"| {build()} | resident, MiB | written, MiB |\n| --- | --: | --: |")
    for name, config in CONFIGURATIONS.items():
        resident, written = zip(*(measure(config) for _ in range(starts)), strict=True)
        print(f"| {name} | {statistics.median(resident):.1f} | {statistics.median(written):.1f} |")


if __name__ == "__main__":
    main()
