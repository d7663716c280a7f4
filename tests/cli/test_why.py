"""`why` of a gateway with subscribers: what each filter said, and what is still owed."""

import asyncio
import json
import sqlite3
from collections.abc import Iterator
from pathlib import Path

import pytest

from gateway.cli.main import main
from gateway.mqtt.packets import PubAck, Publish, Subscribe, SubscriptionRequest
from gateway.mqtt.properties import Properties
from tests.support.gateway_process import GatewayProcess
from tests.support.ports import free_port
from tests.support.raw_client import Clients, RawClient

CONFIG = """
[gateway]
id = "barn"
[history]
keep = "1h"
[uplink]
url = "mqtt://127.0.0.1:{port}"
[[uplink.rule]]
topic = "s/#"
where = "CHANGED(payload.t)"
[[uplink.rule]]
topic = "s/#"
where = "payload.t > 100"
[[subscription_filter]]
client = "panel-*"
filter = "s/#"
where = "payload.t > 2"
"""

HOT = "payload.t > 2 AND $user.site = 'A'"


@pytest.fixture(scope="module")
def gateway(tmp_path_factory: pytest.TempPathFactory) -> Iterator[GatewayProcess]:
    folder = tmp_path_factory.mktemp("why")
    process = GatewayProcess(folder, CONFIG.format(port=free_port())).start()
    asyncio.run(converse(process.port))
    process.stop()
    yield process
    process.kill()


async def converse(port: int) -> None:
    """Publish t = 1, 3, 3 past six subscribers, the last once they are gone."""
    clients = Clients(port)
    own = await clients.connect("own")
    for name, topic_filter, qos, where in (
        ("hot", "s/#", 1, HOT),
        ("lukewarm", "s/+", 2, HOT),
        ("panel-1", "s/#", 0, None),
        ("every", "$share/g/s/1", 1, None),
        ("elsewhere", "t", 1, None),
    ):
        await subscribe(await clients.connect(name), topic_filter, qos, where)
    await subscribe(own, "s/#", 1, None, no_local=True)
    await publish(own, 1)
    await publish(own, 3)
    await clients.close()
    last = Clients(port)
    await publish(await last.connect("own"), 3)
    await last.close()


async def subscribe(
    client: RawClient, topic_filter: str, qos: int, where: str | None, *, no_local: bool = False
) -> None:
    properties = Properties(user_properties=() if where is None else (("$where", where),))
    request = SubscriptionRequest(topic_filter, qos, no_local=no_local)
    await client.send(Subscribe(1, [request], properties))
    await client.receive()


async def publish(client: RawClient, value: int) -> None:
    properties = Properties(user_properties=(("site", "A"),))
    payload = json.dumps({"t": value}).encode()
    await client.send(Publish("s/1", payload, qos=1, packet_id=1, properties=properties))
    assert isinstance(await client.receive(), PubAck)


@pytest.fixture
def database(gateway: GatewayProcess) -> Iterator[sqlite3.Connection]:
    connection = sqlite3.connect(gateway.data / "tidegate.db")
    yield connection
    connection.close()


@pytest.fixture
def epoch(database: sqlite3.Connection) -> str:
    return str(database.execute("SELECT epoch FROM history").fetchone()[0])


def told(capsys: pytest.CaptureFixture[str], *arguments: str) -> list[str]:
    assert main(["why", *arguments]) == 0
    lines = capsys.readouterr().out.splitlines()
    return lines[next(n for n, line in enumerate(lines) if line.startswith("subscriptions: ")) :]


UNKNOWN = "  its session is not stored: nobody knows here whether it was acknowledged"


def parts(value: int, result: str) -> list[str]:
    return [
        f"  {result}  <-  {HOT}",
        f"    {result}  <-  payload.t > 2",
        f"      {value}  <-  payload.t",
        "      2",
        "    TRUE  <-  $user.site = 'A'",
        "      'A'  <-  $user.site",
        "      'A'",
    ]


def test_what_every_filter_said(
    gateway: GatewayProcess, epoch: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert told(capsys, f"{epoch}.main.2", "--data", str(gateway.data)) == [
        "subscriptions: 5 of 6 are for s/1",
        "client 'every' on $share/g/s/1, QoS 1: no $where, passes, one member of the group gets it",
        UNKNOWN,
        "client 'hot' on s/#, QoS 1: TRUE, passes",
        *parts(3, "TRUE"),
        UNKNOWN,
        "client 'lukewarm' on s/+, QoS 2: TRUE, passes",
        UNKNOWN,
        "client 'own' on s/#, QoS 1: not sent, No Local: the client published it itself",
        "client 'panel-1' on s/#, QoS 0: TRUE, passes",
        "  TRUE  <-  payload.t > 2",
        "    3  <-  payload.t",
        "    2",
        "  at QoS 0 nobody acknowledges it",
    ]


def test_why_a_subscriber_did_not_get_it(
    gateway: GatewayProcess, epoch: str, capsys: pytest.CaptureFixture[str]
) -> None:
    lines = told(capsys, f"{epoch}.main.1", "--data", str(gateway.data))
    place = lines.index("client 'hot' on s/#, QoS 1: FALSE, filtered")
    assert lines[place + 1 : place + 8] == parts(1, "FALSE")
    assert "client 'lukewarm' on s/+, QoS 2: FALSE, filtered" in lines


def test_subscriptions_are_those_of_the_messages_time(
    gateway: GatewayProcess, epoch: str, capsys: pytest.CaptureFixture[str]
) -> None:
    lines = told(capsys, f"{epoch}.main.3", "--data", str(gateway.data))
    assert lines == ["subscriptions: 0 of 0 are for s/1"]


def changed(gateway: GatewayProcess, folder: Path, script: str) -> str:
    """Return a data folder with a copy of the gateway's database, changed."""
    source = sqlite3.connect(gateway.data / "tidegate.db")
    target = sqlite3.connect(folder / "tidegate.db")
    source.backup(target)
    target.executescript(script)
    target.close()
    source.close()
    return str(folder)


def test_an_expression_that_is_not_accepted_any_more(
    gateway: GatewayProcess, epoch: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    script = "UPDATE history_subscriptions SET expression = 'a =' WHERE client_id = 'hot'"
    lines = told(capsys, f"{epoch}.main.2", "--data", changed(gateway, tmp_path, script))
    place = lines.index(
        "client 'hot' on s/#, QoS 1: nothing is delivered, its $where is not accepted"
    )
    assert lines[place + 1] == "  $where:3: expected an operand, found the end of the expression"


def test_a_filter_that_may_not_see_the_publisher(
    gateway: GatewayProcess, epoch: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    script = (
        "UPDATE history_subscriptions SET expression = '$clientid = ''own''',"
        " identity = client_id = 'hot' WHERE client_id IN ('hot', 'lukewarm')"
    )
    lines = told(capsys, f"{epoch}.main.2", "--data", changed(gateway, tmp_path, script))
    assert "client 'hot' on s/#, QoS 1: TRUE, passes" in lines
    assert "client 'lukewarm' on s/+, QoS 2: NULL, filtered" in lines


def test_a_retained_message(
    gateway: GatewayProcess, epoch: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    data = changed(gateway, tmp_path, "UPDATE history SET retain = 1")
    lines = told(capsys, f"{epoch}.main.2", "--data", data)
    assert lines[1] == "RETAIN: who subscribed later may have got it, too, if its filter passed it"


TABLES = """
DROP TABLE IF EXISTS session; DROP TABLE IF EXISTS message; DROP TABLE IF EXISTS delivery;
CREATE TABLE session (id, client_id);
CREATE TABLE message (id, topic, received_at, payload);
CREATE TABLE delivery (session, message, packet_id, released);
INSERT INTO session VALUES (1, 'hot'), (2, 'lukewarm'), (3, 'every');
INSERT INTO message SELECT id, topic, time, payload FROM history;
INSERT INTO delivery SELECT 1, max(id), 0, 0 FROM message WHERE payload = x'7b2274223a20337d'
 AND id < (SELECT max(id) FROM message);
"""


@pytest.mark.parametrize(
    ("packet_id", "qos", "released", "state"),
    [
        (0, 1, 0, "waits in its session's queue"),
        (7, 1, 0, "sent with packet identifier 7, PUBACK has not come yet"),
    ],
)
def test_what_a_stored_session_is_owed(
    gateway: GatewayProcess,
    epoch: str,
    tmp_path: Path,
    packet_id: int,
    qos: int,
    released: int,
    state: str,
    capsys: pytest.CaptureFixture[str],
) -> None:
    script = f"{TABLES} UPDATE delivery SET packet_id = {packet_id}, released = {released};"
    lines = told(capsys, f"{epoch}.main.2", "--data", changed(gateway, tmp_path, script))
    assert f"  {state}" in lines
    done = "  not owed to its stored session any more: acknowledged, expired or dropped"
    assert lines.count(done) == 2


def test_one_that_was_not_sent(
    gateway: GatewayProcess, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "message.json"
    for value, verdict in (
        (3, ["would be filtered: no rule of the stream main takes it"]),
        (4, ["would be taken by rule 0, lane live, stream main"]),
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
    gateway: GatewayProcess, epoch: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    data = changed(gateway, tmp_path, "DELETE FROM history")
    assert main(["why", f"{epoch}.main.2", "--data", data]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert "older than the history: rules and subscriptions are those of now" in lines
    assert "rule 0 on s/#: TRUE" in lines
    (waits,) = [line for line in lines if line.startswith("waits in the outbox, lane live")]
    assert waits.endswith("it waited over a restart and goes up with resent = 1")


def test_what_the_ledger_says(
    gateway: GatewayProcess, epoch: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    script = f"""
    DROP TABLE IF EXISTS ledger;
    CREATE TABLE ledger (epoch, stream, first, last, fate, cause);
    INSERT INTO ledger VALUES ('{epoch}', 'main', 1, 1, 'evicted', ''),
     ('{epoch}', 'main', 2, 2, 'expired', '7d');
    DELETE FROM outbox;
    """
    data = changed(gateway, tmp_path, script)
    ends = {1: "evicted", 2: "expired, 7d"}
    for number, end in ends.items():
        assert main(["why", f"{epoch}.main.{number}", "--data", data]) == 0
        assert f"left the outbox: {end}" in capsys.readouterr().out.splitlines()


def test_a_memory_that_is_older_than_the_history(
    gateway: GatewayProcess, epoch: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    script = "DELETE FROM history WHERE id < (SELECT max(id) FROM history)"
    data = changed(gateway, tmp_path, script)
    assert main(["why", f"{epoch}.main.3", "--data", data]) == 0
    lines = capsys.readouterr().out.splitlines()
    place = lines.index("rule 0 on s/#: FALSE")
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


def test_without_a_history(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "message.json"
    file.write_text('{"topic": "s/1"}')
    assert main(["why", "--message", str(file), "--data", str(tmp_path)]) == 3
    assert capsys.readouterr().err.startswith("tidegate: history is off: ")
