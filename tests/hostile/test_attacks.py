"""A client that behaves is served while others attack, and memory stays within its limit.

Each attack is small here; `make hostile` makes them as large as their texts say, and writes what
was seen into bench/attacks.md.
"""

import os
import resource
import signal
from pathlib import Path

import pytest

from tests.hostile.attacks import ATTACKS, hoards
from tests.hostile.attacks.packets import many_topic_filters
from tests.hostile.beside import bystander
from tests.hostile.scene import Attack, Scene
from tests.hostile.table import note
from tests.support.ports import free_port
from tests.support.processes.gateway_process import GatewayProcess
from tests.support.waiting import until

SCALE = float(os.environ.get("TIDEGATE_HOSTILE", "0.02"))

LIMIT = 64 if SCALE < 1 else 256
"""MiB that clients may make the gateway hold."""

RELOADED = "access rules are read again"
"""What the gateway logs when changed rules hold for all clients."""

OVER = 4
"""MiB that the process may occupy beside that limit and what it had before: a fork begins with
45, a command that is started anew with 28."""

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
[[listener]]
port = {rules_port}
acl_file = "{rules}"
[[channel]]
name = "jobs"
filter = "jobs/#"
memory_messages = 100_000
[memory]
limit = "{limit}MiB"
[broker]
maximum_share = {share}
"""


UNMEASURED: dict[Attack, list[pytest.MarkDecorator]] = {many_topic_filters: [pytest.mark.uncovered]}
"""It goes the ways of any SUBSCRIBE, and ten times as long while coverage is measured."""


@pytest.fixture
def gateway(tmp_path: Path) -> GatewayProcess:
    return GatewayProcess(tmp_path, "")


@pytest.fixture
def scene(gateway: GatewayProcess, attack: Attack) -> Scene:
    acl = gateway.folder / "acl"
    acl.write_text("", encoding="utf-8")
    ports = (free_port(), free_port(), free_port())

    def reload() -> None:
        assert gateway.process is not None
        before = gateway.log().count(RELOADED)
        gateway.process.send_signal(signal.SIGHUP)
        until(lambda: gateway.log().count(RELOADED) > before, "the rules are read", gateway.log)

    gateway.configure(
        CONFIGURATION.format(
            tls_port=ports[0],
            websocket_port=ports[1],
            rules_port=ports[2],
            rules=acl,
            certificates=CERTIFICATES,
            limit=LIMIT,
            share=50 if attack in hoards.ATTACKS else 100,  # which is to reach its full size
        )
    )
    return Scene(gateway.port, *ports, acl, reload, SCALE)


@pytest.fixture(autouse=True)
def _descriptors() -> None:
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))


@pytest.mark.timeout(600)
@pytest.mark.parametrize(
    "attack",
    [
        pytest.param(attack, id=attack.__name__, marks=UNMEASURED.get(attack, ()))
        for attack in ATTACKS
    ],
)
def test_a_client_that_behaves_is_served_all_the_while(
    gateway: GatewayProcess, scene: Scene, attack: Attack
) -> None:
    gateway.start(anew=SCALE >= 1)  # bench/attacks.md has its exact memory
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
