"""A client that is refused: with the reason, as its version can be told it."""

import logging

import pytest

from gateway.mqtt.packets import MQTT_3_1, MQTT_3_1_1, ConnAck, Connect, PingReq, Will
from gateway.mqtt.properties import Properties
from gateway.mqtt.reason_codes import ReasonCode
from tests.support.broker.broker_harness import Harness
from tests.support.broker.users import Users


def test_a_client_that_can_be_told_nothing_is_let_go(harness: Harness) -> None:
    client = harness.open()
    client.send(Connect("c", properties=Properties(maximum_packet_size=10)))
    assert not client.take()
    assert client.closed()
    assert not harness.broker.sessions


def test_an_empty_client_identifier_of_mqtt_3_1_1_needs_a_clean_session(harness: Harness) -> None:
    assert harness.connect("", MQTT_3_1_1).connack == ConnAck()
    client = harness.open(MQTT_3_1_1)
    client.send(Connect("", MQTT_3_1_1, clean_start=False))
    assert client.take() == [ConnAck(False, ReasonCode.CLIENT_IDENTIFIER_NOT_VALID)]
    assert client.closed()
    assert harness.counters.count("tidegate/clients/refused") == 1


@pytest.mark.parametrize("name", ["$uplink", "$CONTROL", "$SYS", "$delay", "$channel/jobs"])
def test_nobody_is_taken_for_a_part_of_the_gateway(harness: Harness, name: str) -> None:
    client = harness.open()
    client.send(Connect(name))
    [connack] = client.take()
    assert isinstance(connack, ConnAck)
    assert connack.reason_code == ReasonCode.CLIENT_IDENTIFIER_NOT_VALID
    assert connack.properties.reason_string == f"{name!r} is a name of the gateway's own"
    assert client.closed()


@pytest.mark.parametrize("clean_start", [True, False])
def test_mqtt_3_1_has_no_empty_client_identifier(harness: Harness, clean_start: bool) -> None:
    client = harness.open(MQTT_3_1)
    client.send(Connect("", MQTT_3_1, clean_start))
    assert client.take() == [ConnAck(False, ReasonCode.CLIENT_IDENTIFIER_NOT_VALID)]
    assert client.closed()


REFUSED = {
    "enhanced authentication": (
        Connect("c", properties=Properties(authentication_method="SCRAM-SHA-256")),
        ReasonCode.BAD_AUTHENTICATION_METHOD,
        "authentication method 'SCRAM-SHA-256' is not supported",
    ),
    "wrong password": (
        Connect("c", username="anna", password=b"x"),
        ReasonCode.BAD_USER_NAME_OR_PASSWORD,
        "user name or password is wrong",
    ),
    "no user name": (Connect("c"), ReasonCode.NOT_AUTHORIZED, "this listener requires a user name"),
    "a will to a topic of the gateway's own": (
        Connect("c", username="anna", password=b"secret", will=Will("$SYS/broker/uptime", b"0")),
        ReasonCode.NOT_AUTHORIZED,
        "the will's topic '$SYS/broker/uptime' is not writable",
    ),
}


@pytest.mark.parametrize(("connect", "code", "reason"), REFUSED.values(), ids=REFUSED.keys())
def test_a_client_is_refused_with_the_reason(
    harness: Harness,
    caplog: pytest.LogCaptureFixture,
    connect: Connect,
    code: ReasonCode,
    reason: str,
) -> None:
    client = harness.open(authenticator=Users(anna="secret"))
    client.send(connect, PingReq())
    harness.pass_time(1.0)
    assert client.take() == [ConnAck(False, code, Properties(reason_string=reason))]
    assert client.closed()
    assert not harness.broker.sessions
    user = f" of user {connect.username!r}" if connect.username is not None else ""
    assert caplog.record_tuples == [
        (
            "gateway.broker.connecting.connack",
            logging.WARNING,
            f"refused client 'c'{user} at 192.0.2.7:40000: {reason} (0x{code:02X})",
        )
    ]


LONG = "\x01" * 65_000


@pytest.mark.parametrize(
    "connect",
    [
        Connect("c", properties=Properties(authentication_method=LONG)),
        Connect("c", will=Will("$" + LONG, b"")),
    ],
    ids=["method", "will"],
)
def test_a_refusal_repeats_only_the_beginning_of_what_was_refused(
    harness: Harness, connect: Connect
) -> None:
    client = harness.open()
    client.send(connect)
    connack = client.take_only(ConnAck)
    assert connack.properties.reason_string is not None
    assert len(connack.properties.reason_string) < 500
