"""What a container's health check says of a gateway."""

import os
import subprocess
import sys
from pathlib import Path

from tests.support.ports import free_port
from tests.support.processes.gateway_process import GatewayProcess

PROGRAM = Path(__file__).parents[2] / "packaging/oci/health.py"


def health(metrics: int, listener: int) -> int:
    environment = {
        **os.environ,
        "TIDEGATE__METRICS__PORT": str(metrics),
        "TIDEGATE__LISTENER__0__PORT": str(listener),
    }
    return subprocess.run(
        [sys.executable, "-I", str(PROGRAM)], env=environment, check=False
    ).returncode


def test_it_is_well_while_it_answers(tmp_path: Path) -> None:
    metrics, nobody = free_port(), free_port()
    gateway = GatewayProcess(tmp_path, f"[gateway]\nid = 'a'\n[metrics]\nport = {metrics}\n")
    try:
        gateway.start()
        assert health(metrics, nobody) == 0
        assert health(nobody, gateway.port) == 0  # without [metrics]
        assert health(nobody, nobody) == 1
    finally:
        gateway.kill()
