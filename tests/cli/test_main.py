import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from gateway.cli import parser
from gateway.cli.main import main
from gateway.compiled import build
from gateway.version import describe

BAD_PORTS = ["0", "65536", "-1", "http", "1883.0", "", "٣", " 1"]


def error_line(capsys: pytest.CaptureFixture[str]) -> str:
    """Return the only line on standard error; nothing may be on standard output."""
    output, errors = capsys.readouterr()
    assert not output
    assert errors.endswith("\n")
    assert errors.count("\n") == 1
    return errors.rstrip("\n")


def test_version(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as raised:
        main(["--version"])
    assert raised.value.code == 0
    assert capsys.readouterr().out == f"{describe(build())}\n"


def test_help_names_every_command(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as raised:
        main(["--help"])
    assert raised.value.code == 0
    output = capsys.readouterr().out
    for command in ("run", "check", "tui", "subscribe", "uplink", "where", "why"):
        assert re.search(rf"^ +{command}\b", output, re.MULTILINE)


@pytest.mark.parametrize(
    ("said", "terminal", "columns"),
    [
        ("60", 200, 60),
        ("0", 200, 200),
        ("wide", 120, 120),
        (None, 120, 120),
        (None, 0, 80),
        (None, None, 80),
    ],
)
def test_the_width_of_the_terminal(
    said: str | None, terminal: int | None, columns: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    def size() -> os.terminal_size:
        if terminal is None:
            raise OSError
        return os.terminal_size((terminal, 24))

    monkeypatch.delenv("COLUMNS", raising=False)
    if said is not None:
        monkeypatch.setenv("COLUMNS", said)
    monkeypatch.setattr(os, "get_terminal_size", size)
    assert parser.columns() == columns


def test_help_is_as_wide_as_the_terminal(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "60")
    with pytest.raises(SystemExit):
        main(["run", "--help"])
    assert 50 < max(map(len, capsys.readouterr().out.splitlines())) <= 58


@pytest.mark.parametrize("port", BAD_PORTS)
def test_a_bad_port(port: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as raised:
        main(["run", f"--port={port}"])
    assert raised.value.code == 2
    assert (
        error_line(capsys) == f"tidegate run: argument --port: {port!r} is not a port: 1 to 65535"
    )


@pytest.mark.parametrize(
    ("arguments", "told_of"),
    [
        ([], "COMMAND"),
        (["fly"], "'fly'"),
        (["run", "--durability", "sometimes"], "--durability"),
        (["run", "--prot", "1"], "--prot"),
        (["check"], "FILE"),
        (["uplink"], "action"),
        (["uplink", "stop"], "'stop'"),
        (["doctor", "mqtt://barn"], "mqtt://barn"),
        (["status", "mqtt://barn", "mqtt://mill"], "mqtt://barn mqtt://mill"),
        (["status", "--url", "mqtt://barn", "mqtt://mill"], "mqtt://mill"),
        (["status", "--uri=mqtt://barn"], "--uri=mqtt://barn"),
    ],
)
def test_what_the_command_line_cannot_mean(
    arguments: list[str], told_of: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as raised:
        main(arguments)
    assert raised.value.code == 2
    line = error_line(capsys)
    assert line.startswith("tidegate")
    assert told_of in line


def test_check_of_a_good_file(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "gateway.toml"
    path.write_text("[uplink]\n[[uplink.rule]]\ntopic = 'a/#'\nwhere = 'payload.value > 1'\n")
    assert main(["check", str(path)]) == 0
    assert capsys.readouterr().out == f"{path}: ok\n"
    assert list(tmp_path.iterdir()) == [path]


@pytest.mark.parametrize(
    ("text", "key"),
    [("[uplink]\n[outbox]\n", "outbox.when_full"), ("[broker]\nqueue_", "broker.queue_when_full")],
)
def test_check_says_what_gives_up_acknowledged_messages(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], text: str, key: str
) -> None:
    path = tmp_path / "gateway.toml"
    path.write_text(f"{text}when_full = 'drop-oldest'\n")
    assert main(["check", str(path)]) == 0
    warning, verdict = capsys.readouterr().out.splitlines()
    assert warning.startswith(f'{path}: warning: {key}: "drop-oldest" drops')
    assert verdict == f"{path}: ok"


@pytest.mark.parametrize(
    ("text", "key"),
    [
        ("[gateway]\nid = ''", "gateway.id"),
        ("[[uplink.rule]]\ntopic = 'a/#/b'", "uplink.rule[0].topic"),
        ("[[uplink.rule]]\ntopic = 'a'\nwhere = '('", "uplink.rule[0].where"),
    ],
)
def test_check_of_a_bad_file(
    text: str, key: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "gateway.toml"
    path.write_text(text)
    assert main(["check", str(path)]) == 2
    assert error_line(capsys).startswith(f"tidegate: {path}: {key} = ")


def test_check_of_no_file(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["check", str(tmp_path / "none")]) == 2
    assert error_line(capsys) == f"tidegate: {tmp_path / 'none'}: No such file or directory"


def test_an_interrupt_is_reported_as_a_shell_does(monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(_: Path) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("gateway.config.load.read", interrupted)
    assert main(["check", "any"]) == 130


@pytest.mark.uncovered
@pytest.mark.parametrize(
    "command", ["check --schema", "bridges", "where check 'payload.value > 1'"]
)
def test_a_reader_that_goes_is_no_mistake(command: str) -> None:
    shell = (
        f"{sys.executable} -P -c 'import sys; from gateway.cli.main import main; sys.exit(main())'"
    )
    done = subprocess.run(
        ["bash", "-c", f"{shell} {command} | head -0; exit ${{PIPESTATUS[0]}}"],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert (done.returncode in (0, 141), done.stderr) == (True, "")
