"""`tidegate firmware` where a person can still mend it: names, files and ports."""

import argparse
from pathlib import Path

import pytest

from gateway.bridges.serial.port import PluggedIn
from gateway.cli.firmware import flash
from gateway.cli.firmware.flash import (
    Reporter,
    command_flash,
    command_update,
    only_port,
    show_ports,
    write_new,
)
from gateway.errors import TidegateError
from tests.support.table import table

PICO, ESP = PluggedIn("/dev/ttyNO1", "a Pico"), PluggedIn("/dev/ttyNO2", "an ESP32")


@table(
    "board, sensor, name, output",
    [
        ("picco", "bme280", "n1", "--board 'picco': one of pico, "),
        ("pico", "bme28", "n1", 'did you mean "bme280"?'),
        ("pico", "bme280", "a/b", "--name 'a/b': "),
    ],
)
def test_a_word_that_is_not_known(
    tmp_path: Path, board: str, sensor: str, name: str, output: str
) -> None:
    with pytest.raises(TidegateError) as error:
        write_new(board, [sensor], name, tmp_path / "node.toml")
    assert output in str(error.value)
    assert not (tmp_path / "node.toml").exists()


def test_a_settings_file_is_not_written_over(tmp_path: Path) -> None:
    file = tmp_path / "node.toml"
    assert write_new("pico", ["bme280"], "n1", file) == 0
    before = file.read_text(encoding="utf-8")
    with pytest.raises(TidegateError, match="exists: name another file"):
        write_new("pico", ["sht3x"], "n2", file)
    assert file.read_text(encoding="utf-8") == before
    with pytest.raises(TidegateError, match="No such file or directory"):
        write_new("pico", ["bme280"], "n1", tmp_path / "none" / "node.toml")


def test_which_port_is_meant(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    found: list[PluggedIn] = []
    monkeypatch.setattr(flash, "plugged_in", lambda: found)
    assert only_port("/dev/ttyS9") == "/dev/ttyS9"
    assert show_ports([]) == 1
    with pytest.raises(TidegateError, match="no board is plugged in"):
        only_port(None)
    found.append(PICO)
    assert only_port(None) == PICO.port
    assert show_ports([]) == 0
    assert "/dev/ttyNO1  a Pico: nothing that answers" in capsys.readouterr().out
    found.append(ESP)
    with pytest.raises(TidegateError, match="--port names one: /dev/ttyNO1, /dev/ttyNO2"):
        only_port(None)


@pytest.fixture(autouse=True)
def no_wait(monkeypatch: pytest.MonkeyPatch) -> None:
    """A port that is not there does not come back in a moment."""
    monkeypatch.setattr("gateway.flashing.port.APPEAR_SECONDS", 0.01)


def options(**given: object) -> argparse.Namespace:
    defaults: dict[str, object] = {
        "port": None, "ports": [], "all": False, "source": False, "replace": False, "drive": None,
        "micropython": None, "no_stub": False, "url": "mqtt://127.0.0.1:1",
    }  # fmt: skip
    return argparse.Namespace(**{**defaults, **given})


def test_each_board_that_cannot_be_updated_is_told(capsys: pytest.CaptureFixture[str]) -> None:
    assert command_update(options(ports=["/dev/ttyNO1", "/dev/ttyNO2"])) == 1
    output = capsys.readouterr()
    assert output.out == "0 of 2 nodes have this version\n"
    assert output.err.splitlines() == [
        f"/dev/ttyNO{number} is not there: is the board plugged in?" for number in (1, 2)
    ]


def test_all_boards_are_those_of_the_configuration_too(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("gateway.cli.firmware.flash.plugged_in", lambda: [PICO])
    monkeypatch.setattr("gateway.cli.own_gateway.FOLDERS", ())
    config = tmp_path / "gateway.toml"
    config.write_text(
        '[[serial]]\nport = "/dev/ttyNO2"\n[[serial]]\nport = "/dev/ttyNO3"\nformat = "json"\n'
        '[[serial]]\nport = "topic://nodes/n1"\n[[serial]]\nport = "/dev/ttyNO1"\n'
        '[[serial]]\nport = "usb:1a86:7523:gone"\n'
    )
    given = options(all=True, config=config, url=None)
    assert command_update(given) == 1
    output = capsys.readouterr()
    assert "0 of 3 nodes" in output.out
    assert "no adapter 1a86:7523:gone is plugged in" in output.err
    assert given.url is None
    config.write_text('[[listener]]\nport = 1999\n[[serial]]\nport = "/dev/ttyNO2"\n')
    for url, asked in ((None, "mqtt://127.0.0.1:1999"), ("mqtt://b:1", "mqtt://b:1")):
        given = options(all=True, config=config, url=url)
        assert command_update(given) == 1
        assert given.url == asked
    config.write_text("[[serial]]\n")
    with pytest.raises(TidegateError, match=r"serial\[0\].port: must be given"):
        command_update(options(all=True, config=config))
    monkeypatch.setattr("gateway.cli.firmware.flash.plugged_in", list)
    with pytest.raises(TidegateError, match=r"no board is plugged in, and .* names none"):
        command_update(options(all=True, config=tmp_path / "none.toml"))


def test_an_image_that_is_not_there(tmp_path: Path) -> None:
    settings = tmp_path / "node.toml"
    write_new("pico", ["simulated"], "n1", settings)
    for image in ("pico.uf2", "esp32.bin"):
        given = options(file=settings, micropython=tmp_path / image, drive=tmp_path, port="/dev/t")
        with pytest.raises(TidegateError, match=f"{image}: No such file or directory"):
            command_flash(given)


def test_a_terminal_shows_a_bar(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("sys.stdout.isatty", lambda: True, raising=False)
    with Reporter().progress("/dev/ttyNO1", 2) as progress:
        progress(2)
    assert "2/2 bytes" in capsys.readouterr().out
