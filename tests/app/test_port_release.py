"""A port is lent to another program, and taken back: `$CONTROL/tidegate/port`."""

import json
from pathlib import Path

import pytest

from gateway.app.port_release import PortRelease
from gateway.bridges.serial.serial_settings import SerialSettings
from gateway.bridges.settings import BridgeSettings
from gateway.mqtt.message import Message
from gateway.mqtt.reason_codes import ReasonCode
from tests.support.table import table

PORT = "/dev/ttyNODE"


class OneBridge:
    """A supervisor with a serial bridge; notes for how long it lends."""

    def __init__(self, port: str = PORT) -> None:
        self.settings: BridgeSettings = SerialSettings(port=port)
        self.lent: list[float] = []

    def release_port(self, wanted: object, seconds: float) -> bool:
        assert callable(wanted)
        if wanted(self.settings):
            self.lent.append(seconds)
        return bool(wanted(self.settings))


def ask(supervisor: OneBridge, payload: bytes) -> ReasonCode:
    port_release = PortRelease(supervisor)  # type: ignore[arg-type] # all that it asks of one
    return port_release.receive(Message("$CONTROL/tidegate/port", payload, client_id="c"))


@table(
    "payload",
    [
        b"",
        b"not JSON",
        b"[]",
        b"1",
        b"[" * 5000,
        b'{"port": 1, "seconds": 1}',
        b'{"port": "/dev/ttyNODE"}',
        b'{"port": "/dev/tty\\u0000NODE", "seconds": 1}',
        b'{"port": "/dev/ttyNODE", "seconds": "1"}',
        b'{"port": "/dev/ttyNODE", "seconds": -1}',
        b'{"port": "/dev/ttyNODE", "seconds": 61}',
        b'{"port": "/dev/ttyNODE", "seconds": NaN}',
    ],
)
def test_what_is_no_request_is_refused(payload: bytes) -> None:
    supervisor = OneBridge()
    assert ask(supervisor, payload) == ReasonCode.PAYLOAD_FORMAT_INVALID
    assert supervisor.lent == []


def test_the_port_is_found_behind_links(tmp_path: Path) -> None:
    link = tmp_path / "node"
    link.symlink_to(PORT)
    supervisor = OneBridge(str(link))
    for path in (PORT, str(link)):
        request = json.dumps({"port": path, "seconds": 15}).encode()
        assert ask(supervisor, request) == ReasonCode.SUCCESS
    assert supervisor.lent == [15, 15]


@pytest.mark.parametrize("port", ["/dev/other", "usb:dead:beef", "socket://127.0.0.1:1"])
def test_another_port_is_not_lent(port: str) -> None:
    supervisor = OneBridge(port)
    request = json.dumps({"port": PORT, "seconds": 15}).encode()
    assert ask(supervisor, request) == ReasonCode.IMPLEMENTATION_SPECIFIC_ERROR
    assert supervisor.lent == []
