import pytest

from gateway.cli.main import main


def test_kinds_are_listed_and_told_apart(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["bridges"]) == 0
    listed = capsys.readouterr().out
    assert "serial" in listed
    assert "thermal" in listed
    assert main(["bridges", "thermal"]) == 0
    output = capsys.readouterr().out
    assert '| `interval` | `"10s"` | seconds between two readings |' in output
    assert "| `silence` |" in output
    assert main(["bridges", "zigbee"]) == 2
    assert "no bridge 'zigbee'; there are " in capsys.readouterr().err
