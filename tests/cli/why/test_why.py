"""`why` of a message: what the uplink's rules made of it, and where it is now."""

import json
from pathlib import Path

import pytest

from gateway.cli.main import main
from tests.support.broker.past_subscribers import Change
from tests.support.processes.gateway_process import GatewayProcess


def test_one_that_was_not_sent(
    gateway: GatewayProcess, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "message.json"
    for value, verdict in (
        (3, ["would be filtered: no rule of the stream main takes it"]),
        (4, ["would be accepted by rule @45f1fae2, lane live, stream main"]),
    ):
        payload = json.dumps({"t": value})
        file.write_text(json.dumps({"topic": "s/1", "qos": 1, "payload": payload}))
        assert main(["why", "--message", str(file), "--data", str(gateway.data)]) == 0
        lines = capsys.readouterr().out.splitlines()
        assert lines[0] == "s/1, 8 bytes, QoS 1: what would become of it now"
        assert "  remembers 3 earlier messages here, rule epoch 1" in lines
        assert [line for line in lines if line.startswith("would")] == verdict
        assert lines[-1] == "subscriptions: 0 of 0 are for s/1"
    file.write_text('{"topic": "other"}')
    assert main(["why", "--message", str(file), "--data", str(gateway.data)]) == 0
    assert "no uplink rule is for other" in capsys.readouterr().out.splitlines()


def test_one_that_only_the_outbox_holds(
    epoch: str, changed: Change, capsys: pytest.CaptureFixture[str]
) -> None:
    data = changed("DELETE FROM history")
    assert main(["why", f"{epoch}.main.2", "--data", data]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert "older than the history: rules and subscriptions are those of now" in lines
    assert "rule @45f1fae2 on s/#: TRUE" in lines
    (waits,) = [line for line in lines if line.startswith("waits in the outbox, lane live")]
    assert waits.endswith("it waited over a restart and will be sent with resent = 1")


def test_what_the_ledger_says(
    epoch: str, changed: Change, capsys: pytest.CaptureFixture[str]
) -> None:
    script = f"""
    DROP TABLE IF EXISTS ledger;
    CREATE TABLE ledger (epoch, stream, first, last, uplink, outcome, reason);
    INSERT INTO ledger VALUES ('{epoch}', 'main', 1, 1, '', 'evicted', ''),
     ('{epoch}', 'main', 2, 2, '', 'expired', '7d');
    DELETE FROM outbox;
    """
    data = changed(script)
    ends = {1: "evicted", 2: "expired, 7d"}
    for number, end in ends.items():
        assert main(["why", f"{epoch}.main.{number}", "--data", data]) == 0
        assert f"deleted from the outbox: {end}" in capsys.readouterr().out.splitlines()


def test_a_memory_that_is_older_than_the_history(
    epoch: str, changed: Change, capsys: pytest.CaptureFixture[str]
) -> None:
    script = "DELETE FROM history WHERE id < (SELECT max(id) FROM history)"
    data = changed(script)
    assert main(["why", f"{epoch}.main.3", "--data", data]) == 0
    lines = capsys.readouterr().out.splitlines()
    place = lines.index("rule @45f1fae2 on s/#: FALSE")
    assert lines[place + 1 : place + 4] == [
        "  CHANGED(payload.t)",
        "  cannot be shown in parts: what it remembered is no longer in the history",
        "  remembers 0 earlier messages here, rule epoch 1",
    ]


def test_a_number_or_a_message(capsys: pytest.CaptureFixture[str]) -> None:
    for arguments in ([], ["00a1b2c3d4.main.1", "--message", "x"]):
        with pytest.raises(SystemExit):
            main(["why", *arguments])
        assert capsys.readouterr().err.startswith("tidegate why: ")


def test_without_a_gateway_s_data(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    assert main(["why", "--topic", "s/1", "--data", str(tmp_path)]) == 2
    assert f"{tmp_path}: there is no tidegate.db" in capsys.readouterr().err
    monkeypatch.setattr("gateway.cli.where.command.FOLDERS", (tmp_path / "a", tmp_path / "b"))
    assert main(["why", "--topic", "s/1"]) == 2
    assert "name the folder with --data, or become root" in capsys.readouterr().err


def test_the_service_s_data_is_found(
    gateway: GatewayProcess, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("gateway.cli.where.command.FOLDERS", (gateway.folder / "var", gateway.data))
    assert main(["why", "--topic", "nothing/here"]) == 2
    assert "'nothing/here' has no message in the history" in capsys.readouterr().err
