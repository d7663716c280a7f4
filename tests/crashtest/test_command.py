"""`tidegate crashtest` as a user runs it, and on a gateway that breaks its promise."""

from functools import partial
from pathlib import Path

import pytest

from crashtest import command
from gateway.cli.main import main
from tests.support.processes.crash_gateway import ForkedGateway


@pytest.mark.uncovered
def test_it_says_what_is_promised_what_was_compared_and_what_was_not_tested(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    arguments = ["crashtest", "--data", str(tmp_path / "var"), "--rounds", "2", "--seconds", "0.3"]
    assert main(arguments) == 0
    text = capsys.readouterr().out
    assert "2 rounds" in text
    assert "must survive its process" in text
    assert "Found: 0 lost, 0 of QoS 2 twice, 0 out of order." in text
    assert "refused with 0x97" in text
    assert "Loss window: 0 acknowledged messages." in text
    assert "Not tested: a loss of power." in text
    assert list((tmp_path / "var").iterdir()) == []


@pytest.mark.uncovered
def test_it_ends_with_1_and_leaves_the_files_when_something_was_lost(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    forgetful = partial(ForkedGateway, arguments=["--durability", "memory"])
    monkeypatch.setattr(command, "GatewayProcess", forgetful)
    assert main(["crashtest", "--data", str(tmp_path), "--rounds", "40", "--seed", "5"]) == 1
    text = capsys.readouterr().out
    assert "LOST: " in text
    assert "Repeat with --seed 5" in text
    (folder,) = tmp_path.iterdir()
    assert (folder / "kills" / "log").read_text()


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        (["--rounds", "0"], "'0' is not 1 to 100000"),
        (["--rounds", "x"], "'x' is not 1 to 100000"),
        (["--seconds", "-1"], "'-1' is not above 0 and up to 3600"),
        (["--seconds", "soon"], "'soon' is not above 0 and up to 3600"),
        (["--data", "/dev/null/x"], "/dev/null/x: Not a directory"),
    ],
)
def test_what_cannot_be_run_is_told_in_one_line(
    arguments: list[str], complaint: str, capsys: pytest.CaptureFixture[str]
) -> None:
    try:
        status = main(["crashtest", *arguments])
    except SystemExit as end:
        status = int(end.code or 0)
    assert status == 2
    assert complaint in capsys.readouterr().err
