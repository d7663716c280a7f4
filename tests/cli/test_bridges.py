import pytest

from gateway.cli.main import main


def test_kinds_are_listed_and_told_apart(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["bridges"]) == 0
    listed = capsys.readouterr().out
    assert "serial" in listed
    assert "thermal" in listed
    assert main(["bridges", "thermal"]) == 0
    output = capsys.readouterr().out
    assert '- `interval = "10s"` (100ms\N{EN DASH}1h): time between two readings\n' in output
    assert "- `silence = 10.0` " in output
    assert main(["bridges", "gpio"]) == 0
    figures = "\n\nFigures below `$SYS/broker/tidegate/gpio/`:\n\n- `pulses_lost`: Changes dropped"
    assert figures in capsys.readouterr().out
    assert main(["bridges", "zigbee"]) == 2
    assert "no bridge 'zigbee'; there are " in capsys.readouterr().err
