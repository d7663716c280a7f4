"""`why` of a gateway with subscribers: what each filter said, and what is still owed."""

import pytest

from gateway.cli.main import main
from tests.support.broker.past_subscribers import HOT, Change
from tests.support.processes.gateway_process import GatewayProcess


def output(capsys: pytest.CaptureFixture[str], *arguments: str) -> list[str]:
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


@pytest.mark.uncovered
def test_what_every_filter_said(
    gateway: GatewayProcess, epoch: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert output(capsys, f"{epoch}.main.2", "--data", str(gateway.data)) == [
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
    lines = output(capsys, f"{epoch}.main.1", "--data", str(gateway.data))
    place = lines.index("client 'hot' on s/#, QoS 1: FALSE, filtered")
    assert lines[place + 1 : place + 8] == parts(1, "FALSE")
    assert "client 'lukewarm' on s/+, QoS 2: FALSE, filtered" in lines


def test_subscriptions_are_those_of_the_messages_time(
    gateway: GatewayProcess, epoch: str, capsys: pytest.CaptureFixture[str]
) -> None:
    lines = output(capsys, f"{epoch}.main.3", "--data", str(gateway.data))
    assert lines == ["subscriptions: 0 of 0 are for s/1"]


def test_an_expression_that_is_not_accepted_any_more(
    epoch: str, changed: Change, capsys: pytest.CaptureFixture[str]
) -> None:
    script = "UPDATE history_subscriptions SET expression = 'a =' WHERE client_id = 'hot'"
    lines = output(capsys, f"{epoch}.main.2", "--data", changed(script))
    place = lines.index(
        "client 'hot' on s/#, QoS 1: nothing is delivered, its $where is not accepted"
    )
    assert lines[place + 1] == "  $where:3: expected an operand, found the end of the expression"


def test_a_filter_that_may_not_see_the_publisher(
    epoch: str, changed: Change, capsys: pytest.CaptureFixture[str]
) -> None:
    script = (
        "UPDATE history_subscriptions SET expression = '$clientid = ''own''',"
        " identity = client_id = 'hot' WHERE client_id IN ('hot', 'lukewarm')"
    )
    lines = output(capsys, f"{epoch}.main.2", "--data", changed(script))
    assert "client 'hot' on s/#, QoS 1: TRUE, passes" in lines
    assert "client 'lukewarm' on s/+, QoS 2: NULL, filtered" in lines


def test_a_retained_message(
    epoch: str, changed: Change, capsys: pytest.CaptureFixture[str]
) -> None:
    data = changed("UPDATE history SET retain = 1")
    lines = output(capsys, f"{epoch}.main.2", "--data", data)
    assert lines[1] == "RETAIN: who subscribed later may have got it, too, if its filter passed it"


TABLES = """
DROP TABLE IF EXISTS session; DROP TABLE IF EXISTS message; DROP TABLE IF EXISTS delivery;
CREATE TABLE session (id, client_id);
CREATE TABLE message (id, topic, time, payload);
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
    epoch: str,
    changed: Change,
    packet_id: int,
    qos: int,
    released: int,
    state: str,
    capsys: pytest.CaptureFixture[str],
) -> None:
    script = f"{TABLES} UPDATE delivery SET packet_id = {packet_id}, released = {released};"
    lines = output(capsys, f"{epoch}.main.2", "--data", changed(script))
    assert f"  {state}" in lines
    done = "  not pending for its stored session any more: acknowledged, expired or dropped"
    assert lines.count(done) == 2
