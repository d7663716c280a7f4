"""The default gateway id: a name that every board has becomes this board's own."""

import re
import socket
from pathlib import Path

import pytest

from gateway.app.checks.warnings import warnings
from gateway.config import host_name
from gateway.config.load import bare, load

MACHINE = "0123456789abcdef0123456789abcdef\n"


@pytest.fixture(autouse=True)
def machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Give the file of the machine id."""
    path = tmp_path / "machine-id"
    path.write_text(MACHINE)
    monkeypatch.setattr(host_name, "MACHINE_IDS", (tmp_path / "none", path))
    return path


@pytest.mark.parametrize("host", ["raspberrypi", "localhost.localdomain", "debian.lan", "Ubuntu"])
def test_a_common_name_is_made_unique(
    host: str, machine: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(socket, "gethostname", lambda: host)
    name = bare(1883).gateway_id
    assert re.fullmatch(host.partition(".")[0] + "-[0-9a-f]{8}", name)
    assert bare(1883).gateway_id == name, "it stays the same"
    [line] = warnings(bare(1883))
    assert f"this gateway is {name!r}" in line
    machine.write_text(MACHINE.replace("0", "f"))
    assert bare(1883).gateway_id != name
    assert MACHINE[:8] not in name, "the machine id is confidential"


def test_another_name_and_one_that_was_chosen_stay(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(socket, "gethostname", lambda: "barn")
    assert bare(1883).gateway_id == "barn"
    assert warnings(bare(1883)) == []
    (tmp_path / "gateway.toml").write_text('gateway.id = "debian"')
    chosen = load(tmp_path / "gateway.toml")
    assert chosen.gateway_id == "debian"
    [line] = warnings(chosen)
    assert "is the name of many boards, and it was set so" in line


@pytest.mark.parametrize("text", ["", "uninitialized\n", "\u00e9"])
def test_without_a_machine_id_it_stays_and_is_said(
    text: str, machine: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    machine.write_text(text)
    monkeypatch.setattr(socket, "gethostname", lambda: "raspberrypi")
    assert bare(1883).gateway_id == "raspberrypi"
    [line] = warnings(bare(1883))
    assert "there is no machine id to make it unique" in line
