"""Who listens on a port is named by this machine's own tables."""

import os
import socket
from pathlib import Path

import pytest

from gateway.server.listening.port_holder import holder_of


@pytest.mark.parametrize(
    ("family", "host"), [(socket.AF_INET, "127.0.0.1"), (socket.AF_INET6, "::1")]
)
def test_this_process_is_found(family: socket.AddressFamily, host: str) -> None:
    with socket.create_server((host, 0), family=family) as listening:
        port = listening.getsockname()[1]
        name = Path("/proc/self/comm").read_text(encoding="utf-8").strip()
        assert holder_of(port) == f"{name} (process {os.getpid()})"
    assert holder_of(port) == ""


def test_a_connection_from_the_port_is_no_listener() -> None:
    with (
        socket.create_server(("127.0.0.1", 0)) as listening,
        socket.create_connection(listening.getsockname()) as client,
    ):
        assert holder_of(client.getsockname()[1]) == ""


def test_what_cannot_be_read_names_nobody(tmp_path: Path) -> None:
    assert holder_of(1883, tmp_path) == ""
    (tmp_path / "net").mkdir()
    row = "  0: 0100007F:075B 00000000:0000 0A 0:0 0:0 0 0 0 77 1"
    (tmp_path / "net/tcp").write_text(f"head\n{row}\n")
    (tmp_path / "12/fd").mkdir(parents=True)
    (tmp_path / "12/fd/3").symlink_to("socket:[77]")
    assert holder_of(1883, tmp_path) == ""  # it has ended: it has no name
    (tmp_path / "12/comm").write_text("mosquitto\n")
    assert holder_of(1883, tmp_path) == "mosquitto (process 12)"
    assert holder_of(1884, tmp_path) == ""
