"""A kind of bridge that another package brings: found, run, described, and told when broken."""

import os
import subprocess
from pathlib import Path

import pytest

from gateway.mqtt.packets import Publish
from tests.support.processes.gateway_process import COMMAND, GatewayProcess
from tests.support.raw_client import Clients

MODULE = """
import asyncio
from dataclasses import dataclass

from gateway.bridges.kind import BridgeKind
from gateway.bridges.settings import BridgeSettings, key
from gateway.settings.checks import number


@dataclass(frozen=True, kw_only=True, slots=True)
class Settings(BridgeSettings):
    level: float = key(number(0, 100), "what is published")


class Bridge:
    def __init__(self, settings, host):
        self.settings, self.host = settings, host

    async def run(self):
        self.host.working()
        while True:
            self.host.read("tank", "level", self.settings.level, "%")
            await asyncio.sleep(0.05)


KIND = BridgeKind("tank", "the level of a tank", Settings, Bridge)
"""


@pytest.fixture
def site(tmp_path: Path) -> dict[str, str]:
    """Return the environment in which the package is installed."""
    folder = tmp_path / "site"
    metadata = folder / "tank-1.0.dist-info"
    metadata.mkdir(parents=True)
    (folder / "tank.py").write_text(MODULE)
    (metadata / "METADATA").write_text("Metadata-Version: 2.1\nName: tank\nVersion: 1.0\n")
    (metadata / "entry_points.txt").write_text(
        "[tidegate.bridges]\ntank = tank:KIND\nbroken = tank:NOTHING\n"
    )
    return {"PYTHONPATH": str(folder)}


def tidegate(site: dict[str, str], *arguments: str) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, **site}
    return subprocess.run(
        [str(COMMAND), *arguments],
        env=environment,
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )


async def test_its_bridge_runs(tmp_path: Path, site: dict[str, str]) -> None:
    gateway = GatewayProcess(tmp_path, "[[tank]]\nlevel = 42\nretain = true\n")
    gateway.start(site)
    clients = Clients(gateway.port)
    watcher = await clients.connect("watcher")
    await watcher.subscribe("sensors/tank/level")
    packet = await watcher.receive()
    await clients.close()
    assert gateway.stop() == 0
    assert isinstance(packet, Publish)
    assert bytes(packet.payload).startswith(b'{"value":42')


@pytest.mark.uncovered
def test_its_mistakes_and_its_description_come_from_the_declaration(
    tmp_path: Path, site: dict[str, str]
) -> None:
    output = tidegate(site, "bridges", "tank").stdout
    assert "- `level` (required; 0\N{EN DASH}100): what is published" in output
    path = tmp_path / "gateway.toml"
    for text, mistake in (
        ("[[tank]]", "tank[0].level: must be given"),
        ("[[tank]]\nlevel = 101", "tank[0].level = 101 is not allowed: a number from 0 to 100"),
        ("[[tank]]\nlevl = 1", "tank[0].levl = 1 is not allowed: unknown key; there are level"),
        ("[[tank]]\nlevel = 1\n[[tank]]\nlevel = 2", "two tank bridges cannot have one name"),
        ("[[broken]]", "broken: this kind cannot be loaded: tank:NOTHING"),
    ):
        path.write_text(text)
        checked = tidegate(site, "check", str(path))
        assert checked.returncode == 2
        assert mistake in checked.stderr
        assert checked.stderr.count("\n") == 1
