"""`where test` and `why` over the history of a gateway that runs, and without one."""

import asyncio
import json
import re
import sqlite3
from collections.abc import Iterator
from pathlib import Path

import pytest

from gateway.cli.main import main
from gateway.cli.where import history
from gateway.cli.where.history import Outcome, lines, try_in_sqlite, try_on
from gateway.mqtt.message import Message
from gateway.mqtt.packets import PubAck, Publish
from gateway.storage.history.reader import open_history
from gateway.where.rule import compile_rule
from tests.support.ports import free_port
from tests.support.processes.gateway_process import GatewayProcess
from tests.support.raw_client import Clients

CONFIG = """
[gateway]
id = "barn"
[history]
keep = "1h"
[uplink]
url = "mqtt://127.0.0.1:{port}"
[[uplink.rule]]
topic = "s/#"
where = "payload.t > 100"
[[uplink.rule]]
topic = "s/#"
where = "DEADBAND(payload.t, 2)"
lane = "backlog"
[[uplink.rule]]
topic = "s/#"
stream = "all"
"""


@pytest.fixture(scope="module")
def gateway(tmp_path_factory: pytest.TempPathFactory) -> Iterator[GatewayProcess]:
    folder = tmp_path_factory.mktemp("history")
    process = GatewayProcess(folder, CONFIG.format(port=free_port())).start()
    yield process
    process.kill()


@pytest.fixture(scope="module")
def epoch(gateway: GatewayProcess) -> str:
    """Give the epoch of a gateway that has taken `s/1` with t from 1 to 6 and another message."""
    asyncio.run(publish(gateway))
    database = sqlite3.connect(gateway.data / "tidegate.db")
    (epoch,) = database.execute("SELECT epoch FROM outbox").fetchone()
    database.close()
    return str(epoch)


async def publish(gateway: GatewayProcess) -> None:
    clients = Clients(gateway.port)
    client = await clients.connect("publisher")
    for value in range(1, 7):
        payload = json.dumps({"t": value}).encode()
        await client.send(Publish("s/1", payload, qos=1, packet_id=value))
        assert isinstance(await client.receive(), PubAck)
    await client.send(Publish("other", b"", qos=1, packet_id=7, retain=True))
    assert isinstance(await client.receive(), PubAck)
    await clients.close()


@pytest.mark.uncovered
@pytest.mark.usefixtures("epoch")
def test_where_test(gateway: GatewayProcess, capsys: pytest.CaptureFixture[str]) -> None:
    arguments = ["--topic", "s/#", "--last", "10m", "--data", str(gateway.data)]
    assert main(["where", "test", "DEADBAND(payload.t, 3)", *arguments]) == 0
    report = capsys.readouterr().out.splitlines()
    assert report[:2] == ["messages: 2 of 6 would pass (33.3 %)", "bytes: 22 B of 66 B (33.3 %)"]
    assert report[2].startswith("longest silence: ")
    assert sum(int(line.split()[-1]) for line in report[3:-1]) == 2
    assert len(report) == 3 + history.BARS + 1
    assert report[-1].startswith("the history begins at ")


@pytest.mark.usefixtures("epoch")
@pytest.mark.parametrize("topic", ["#", "s/#", "other", "+/1"])
@pytest.mark.parametrize(
    "expression", ["payload.t % 2 = 0", "NOT payload.t > 2", "$retain OR topic[1] = '1'", "TRUE"]
)
def test_sqlite_gives_what_python_gives(
    gateway: GatewayProcess, topic: str, expression: str
) -> None:
    where = compile_rule(expression)
    with open_history(gateway.data) as history:
        assert history is not None
        messages = [row.message for row in history.since(0)]
        expected = try_on(where, topic, messages, 0, 1)
        assert try_in_sqlite(where.expression, topic, history, 0, 1) == expected
    assert len(messages) == 7


@pytest.mark.usefixtures("epoch")
def test_what_remembers_is_not_for_sqlite(gateway: GatewayProcess) -> None:
    with open_history(gateway.data) as history:
        assert history is not None
        expression = compile_rule("qos = 1 AND CHANGED(payload.t)").expression
        assert try_in_sqlite(expression, "#", history, 0, 1) is None


@pytest.mark.usefixtures("epoch")
def test_every_topic_by_default(
    gateway: GatewayProcess, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["where", "test", "TRUE", "--data", str(gateway.data)]) == 0
    assert capsys.readouterr().out.startswith("messages: 7 of 7 would pass (100.0 %)\n")


def output(capsys: pytest.CaptureFixture[str]) -> list[str]:
    """Return what stands between the headline and the subscriptions."""
    head, disk, *rest = capsys.readouterr().out.splitlines()
    head_of_all = r"s/1, 8 bytes, QoS 1, from 'publisher', accepted [0-9-]{10} [0-9:.]{15}"
    assert re.fullmatch(head_of_all, head)
    assert disk == "on disk: its PUBACK could be sent"
    assert rest.pop() == "subscriptions: 0 of 0 are for s/1"
    return rest


NOT_OVER_100 = [
    "rule @24114b4f on s/#: FALSE",
    "  FALSE  <-  payload.t > 100",
    "    {}  <-  payload.t",
    "    100",
]
TAKEN = "accepted by rule {}, lane {}, committed with its row of the outbox"
WAITS = (
    "waits in the outbox, lane {}: the fleet has not acknowledged it yet;"
    " it will be sent with resent = 1 if it was sent before or waited for the link"
)


def deadband(result: str, value: int) -> list[str]:
    return [
        f"rule @cebf0d20 on s/#: {result}",
        f"  {result}  <-  DEADBAND(payload.t, 2)",
        f"    {value}  <-  payload.t",
        "    2",
        f"  remembers {value - 1} earlier messages here, rule epoch 1",
    ]


def test_why_it_was_filtered(
    gateway: GatewayProcess, epoch: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["why", f"{epoch}.main.2", "--data", str(gateway.data)]) == 0
    assert output(capsys) == [
        *(line.format(2) for line in NOT_OVER_100),
        *deadband("FALSE", 2),
        "filtered: no rule of the stream took it",
    ]


def test_why_it_was_taken(
    gateway: GatewayProcess, epoch: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["why", f"{epoch}.main.3", "--data", str(gateway.data)]) == 0
    assert output(capsys)[-7:] == [
        *deadband("TRUE", 3),
        TAKEN.format("@cebf0d20", "backlog"),
        WAITS.format("backlog"),
    ]
    assert main(["why", f"{epoch}.all.3", "--data", str(gateway.data)]) == 0
    assert output(capsys) == [
        "rule @a5670cba on s/#: TRUE",
        TAKEN.format("@a5670cba", "live"),
        WAITS.format("live"),
    ]


def copy(gateway: GatewayProcess, folder: Path, *statements: str) -> Path:
    """Copy the gateway's database as it is, and change the copy."""
    source = sqlite3.connect(gateway.data / "tidegate.db")
    target = sqlite3.connect(folder / "tidegate.db")
    source.backup(target)
    for statement in statements:
        target.execute(statement)
    target.commit()
    target.close()
    source.close()
    return folder


def test_what_became_of_it_at_the_fleet(
    gateway: GatewayProcess, epoch: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    columns = "epoch, stream, seq, lane, time, size, topic, payload, qos, retain"
    refuse = (
        f"INSERT INTO rejected (code, rejected_at, {columns})"
        f" SELECT 153, 0, {columns} FROM outbox WHERE seq = 1"
    )
    data = copy(gateway, tmp_path, refuse, "DELETE FROM outbox")
    assert main(["why", f"{epoch}.main.1", "--data", str(data)]) == 0
    assert output(capsys)[-1].startswith("rejected (0x99): `tidegate uplink rejected show ")
    assert main(["why", f"{epoch}.main.3", "--data", str(data)]) == 0
    assert (
        output(capsys)[-1]
        == "deleted from the outbox: the fleet has acknowledged it, or its end in the ledger"
    )


def test_rules_that_are_not_known_any_more(
    gateway: GatewayProcess, epoch: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    overflow = "UPDATE history SET rules = replace(rules, '[1,1,true,false]', '[1,1,true,true]')"
    data = copy(gateway, tmp_path, overflow, "DELETE FROM history_rules WHERE place = 0")
    assert main(["why", f"{epoch}.main.3", "--data", str(data)]) == 0
    assert output(capsys)[:2] == [
        "a rule that the history no longer has: FALSE",
        "rule @cebf0d20 on s/#: TRUE",
    ]
    assert main(["why", f"{epoch}.main.3", "--data", str(data)]) == 0
    assert "  but had no space to remember this one (state_overflow)" in output(capsys)
    (tmp_path / "tidegate.db").unlink()
    data = copy(gateway, tmp_path, "DELETE FROM history_rules")
    assert main(["why", f"{epoch}.all.3", "--data", str(data)]) == 0
    gone = "a rule that the history no longer has"
    accepted = TAKEN.replace("rule {}", gone).format("unknown")
    assert output(capsys) == [f"{gone}: TRUE", accepted, WAITS.format("live")]


def test_a_number_that_was_never_given(
    gateway: GatewayProcess, epoch: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["why", f"{epoch}.main.99", "--data", str(gateway.data)]) == 2
    error = f"tidegate: {epoch}.main.99 is not in the history: too old, or never given\n"
    assert capsys.readouterr().err == error


@pytest.mark.uncovered
@pytest.mark.parametrize(
    "arguments", [["where", "test", "TRUE"], ["why", "00a1b2c3d4.main.1"]], ids=["test", "why"]
)
def test_without_a_history(
    arguments: list[str],
    gateway: GatewayProcess,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    off = copy(gateway, tmp_path, "UPDATE meta SET value = 0 WHERE name = 'history_keep'")
    assert main([*arguments, "--data", str(off)]) == 3
    assert capsys.readouterr().err.startswith("tidegate: history is off: set keep in [history]")
    assert main([*arguments, "--data", str(tmp_path / "nowhere")]) == 2
    assert "nowhere: there is no tidegate.db" in capsys.readouterr().err


def test_mistakes(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["where", "test", "a ="]) == 1
    assert "position 3" in capsys.readouterr().err
    assert main(["where", "test", "TRUE", "--topic", "a/#/b"]) == 2
    assert capsys.readouterr().err.startswith("tidegate: --topic 'a/#/b': ")
    for text in ("2", "h", "", "-1h", "1w", "٣h", "9999999999s"):
        with pytest.raises(SystemExit):
            main(["where", "test", "TRUE", f"--last={text}"])
        assert "is not a time such as 90s" in capsys.readouterr().err
    for text in ("5", "00a1b2c3d4.main", "00A1B2C3D4.main.1", "00a1b2c3d4.m n.1"):
        with pytest.raises(SystemExit):
            main(["why", text])
        assert "is not <epoch>.<stream>.<number>" in capsys.readouterr().err


def test_the_report() -> None:
    hour = 3_600_000
    times = [(0, 1), (hour // 2, 5), (3 * hour, 1), (12 * hour, 1), (13 * hour, 2)]
    messages = [
        Message("s", b"x" * 1023, received_at=time) for time, count in times for _ in range(count)
    ]
    outcome = try_on(compile_rule("TRUE"), "s", messages, 0, 12 * hour)
    assert outcome.silence() == (3 * hour, 12 * hour)
    assert [count for _, count in outcome.histogram()] == [6, 0, 0, 1, *[0] * 7, 3]
    report = lines(outcome)
    assert report[:2] == [
        "messages: 10 of 10 would pass (100.0 %)",
        "bytes: 10.0 KiB of 10.0 KiB (100.0 %)",
    ]
    assert report[2].startswith("longest silence: 9 h 00 m 00 s, from ")
    assert report[3].endswith(f" {'#' * 40} 6")
    assert report[6].endswith(f" {'#' * 7}{' ' * 33} 1")


def test_the_report_of_nothing() -> None:
    outcome = try_on(compile_rule("TRUE"), "s", [Message("t")], 0, 0)
    assert outcome == Outcome(0, 0)
    assert lines(outcome)[:2] == ["messages: 0 of 0 would pass (none)", "bytes: 0 B of 0 B (none)"]
