"""`tidegate bridges scan`: prints a configuration that `tidegate check` takes."""

import contextlib
import os
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from gateway.cli.main import main
from tests.cli.conftest import Command
from tests.support.nodes.serial_line import SerialLine


@pytest.fixture
def port(tmp_path: Path) -> Iterator[str]:
    """Give a port at which a device says the same again and again."""
    line = SerialLine(tmp_path / "ttyNEW")
    line.plug()
    ended = threading.Event()

    def talk() -> None:
        while not ended.wait(0.02):
            with contextlib.suppress(BlockingIOError):
                os.write(line.descriptor, b'{"temp_c":21.5,"humidity":48}\n')

    talking = threading.Thread(target=talk)
    talking.start()
    yield line.port
    ended.set()
    talking.join()
    line.close()


def test_what_is_found_is_a_configuration(tmp_path: Path, tidegate: Command, port: str) -> None:
    done = tidegate("bridges", "scan", "serial", port)
    assert done.returncode == 0, done.stderr
    assert done.stdout == (
        f'# temperature 21.5 °C, humidity 48 %\n[[serial]]\nport = "{port}"\nformat = "json"\n\n'
    )
    assert "listening at 115,200 baud" in done.stderr
    file = tmp_path / "tidegate.toml"
    file.write_text(f'[gateway]\nid = "barn"\n\n{done.stdout}', encoding="utf-8")
    assert tidegate("check", file).returncode == 0


def test_what_cannot_be_scanned_is_told(capsys: pytest.CaptureFixture[str]) -> None:
    def error(*words: str, status: int = 2) -> str:
        assert main(["bridges", "scan", *words]) == status
        return capsys.readouterr().err

    assert "scan needs a kind of bridge: ble, modbus, serial" in error()
    assert "thermal cannot scan; these can: ble, modbus, serial" in error("thermal")
    assert "no bridge 'x'" in error("x")
    for devices in ("9-1", "x", "1-300"):
        assert f"--devices {devices}: a number or a range" in error(
            "modbus", "/dev/ttyNONE", "--devices", devices
        )
    for devices in ("3", "1-9"):
        output = error("modbus", "/dev/ttyNONE", "--devices", devices, status=1)
        assert "/dev/ttyNONE: " in output
