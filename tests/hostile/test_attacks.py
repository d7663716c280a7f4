"""A client that behaves is served while others attack, and memory stays within its limit.

Each attack is small here; `make hostile` makes them as large as their texts say, and writes what
was seen into docs/robustness.md.
"""

import os
import resource
from pathlib import Path

import pytest

from tests.hostile.attacks import ATTACKS, Attack, Scene
from tests.hostile.beside import bystander
from tests.hostile.table import note
from tests.support.ports import free_port
from tests.support.processes.gateway_process import GatewayProcess

SCALE = float(os.environ.get("TIDEGATE_HOSTILE", "0.05"))

LIMIT = 64 if SCALE < 1 else 256
"""MiB that clients may make the gateway hold."""

OVER = 32
"""MiB that the process may take beyond what it had and that limit."""

CERTIFICATES = Path(__file__).parents[1] / "support" / "tls"

CONFIGURATION = """
[[listener]]
[[listener]]
port = {tls_port}
tls_certificate = "{certificates}/server.pem"
tls_key = "{certificates}/server.key"
[[listener]]
port = {websocket_port}
websocket = true
[memory]
limit = "{limit}MiB"
"""


@pytest.fixture
def scene() -> Scene:
    return Scene(0, free_port(), free_port(), SCALE)


@pytest.fixture
def gateway(tmp_path: Path, scene: Scene) -> GatewayProcess:
    text = CONFIGURATION.format(
        tls_port=scene.tls_port,
        websocket_port=scene.websocket_port,
        certificates=CERTIFICATES,
        limit=LIMIT,
    )
    gateway = GatewayProcess(tmp_path, text)
    scene.port = gateway.port
    return gateway


@pytest.fixture(autouse=True)
def _descriptors() -> None:
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))


@pytest.mark.slow
@pytest.mark.timeout(600)
@pytest.mark.parametrize("attack", ATTACKS, ids=lambda attack: attack.__name__)
def test_a_client_that_behaves_is_served_all_the_while(
    gateway: GatewayProcess, scene: Scene, attack: Attack
) -> None:
    gateway.start()
    try:
        with bystander(gateway) as seen:
            attack(scene)
        note(attack.__doc__ or "", seen)
        assert seen.answers > 0
        assert seen.most_mib < seen.before_mib + LIMIT + OVER
        assert "Traceback" not in gateway.log()
        assert gateway.stop() == 0
    finally:
        scene.close()
        gateway.kill()
