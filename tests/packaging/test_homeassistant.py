"""The options of the Home Assistant add-on become a configuration that the gateway takes."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from gateway.config.load import load
from tests.support.processes.gateway_process import COMMAND, tidegate

PROGRAM = Path(__file__).parents[2] / "packaging/homeassistant/tidegate/options_to_toml.py"

NOTHING: dict[str, Any] = {
    "gateway_id": "home",
    "fleet_url": "",
    "fleet_username": "",
    "fleet_password": "",
    "topics": ["sensors/#"],
    "serial_ports": [],
    "extra": [],
}
ALL = {
    **NOTHING,
    "fleet_url": "mqtts://fleet.example:8883",
    "fleet_username": "home",
    "fleet_password": 'se"cret\\ä',
    "topics": ["sensors/#", "doors/+"],
    "serial_ports": ["/dev/serial/by-id/usb-1"],
    "users": [{"name": "anna", "password": "secret"}],
    "extra": ["[history]", 'keep = "7d"'],
}


def converted(options: dict[str, Any], folder: Path) -> Path:
    (folder / "options.json").write_text(json.dumps(options))
    path = f"{COMMAND.parent}:{os.environ['PATH']}"
    command = [sys.executable, "-I", str(PROGRAM), str(folder / "options.json"), str(folder)]
    subprocess.run(command, env={**os.environ, "PATH": path}, check=True, capture_output=True)
    return folder / "gateway.toml"


@pytest.mark.parametrize("options", [NOTHING, ALL], ids=["nothing", "all"])
def test_the_gateway_takes_it(options: dict[str, Any], tmp_path: Path) -> None:
    file = converted(options, tmp_path)
    done = tidegate("check", file)
    assert done.stdout.endswith(": ok\n"), done.stderr


def test_what_was_asked_for_is_there(tmp_path: Path) -> None:
    configuration = load(converted(ALL, tmp_path))
    assert configuration.gateway_id == "home"
    (listener,) = configuration.listeners
    assert (listener.host, listener.port) == ("0.0.0.0", 1884)
    assert "anna:" in (tmp_path / "users").read_text()
    (uplink,) = configuration.uplinks
    assert (uplink.url, uplink.username) == ("mqtts://fleet.example:8883", "home")
    assert (tmp_path / "fleet-password").read_text() == 'se"cret\\ä'
    for name in ("fleet-password", "gateway.toml"):
        assert (tmp_path / name).stat().st_mode & 0o777 == 0o600
