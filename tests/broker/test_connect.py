import logging

import pytest

from gateway.broker.connack import ADMITTED, tell_admitted
from gateway.broker.settings import BrokerSettings
from gateway.mqtt.packets import (
    MQTT_3_1,
    MQTT_3_1_1,
    MQTT_5,
    ConnAck,
    Connect,
    Disconnect,
    PingReq,
    PingResp,
    Publish,
    Will,
)
from gateway.mqtt.properties import Properties
from gateway.mqtt.reason_codes import ReasonCode
from tests.support.broker_harness import Harness

VERSIONS = (MQTT_3_1, MQTT_3_1_1, MQTT_5)


class Users:
    """Knows one user."""

    def check(self, username: str | None, password: bytes | None) -> bool:
        return (username, password) == ("anna", b"secret")


@pytest.mark.parametrize("version", VERSIONS)
def test_a_client_is_accepted_in_its_own_version(harness: Harness, version: int) -> None:
    client = harness.connect("c", version)
    assert not client.connack.session_present
    client.send(PingReq())
    assert client.take() == [PingResp()]


def test_mqtt_5_is_told_the_limits_and_that_where_is_understood() -> None:
    harness = Harness(
        BrokerSettings(maximum_packet_size=5_000, topic_alias_maximum=3, receive_maximum=20)
    )
    assert harness.connect().connack.properties == Properties(
        receive_maximum=20,
        maximum_packet_size=5_000,
        topic_alias_maximum=3,
        user_properties=(("$where", "1"),),
    )


@pytest.mark.parametrize(
    ("configured", "asked", "told"),
    [("answers/", 1, "answers/"), ("answers/", 0, None), ("answers/", None, None), (None, 1, None)],
)
def test_response_information_is_told_to_those_who_ask(
    configured: str | None, asked: int | None, told: str | None
) -> None:
    harness = Harness(BrokerSettings(response_information=configured))
    client = harness.open()
    client.send(Connect("c", properties=Properties(request_response_information=asked)))
    (connack,) = client.take()
    assert isinstance(connack, ConnAck)
    assert connack.properties.response_information == told


def test_a_client_that_can_be_told_nothing_is_let_go(harness: Harness) -> None:
    client = harness.open()
    client.send(Connect("c", properties=Properties(maximum_packet_size=10)))
    assert not client.take()
    assert client.closed()
    assert not harness.broker.sessions


def test_without_topic_aliases_there_is_no_topic_alias_maximum() -> None:
    harness = Harness(BrokerSettings(topic_alias_maximum=0))
    assert harness.connect().connack.properties.topic_alias_maximum is None


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("resumed", [True, False])
def test_session_present_says_whether_the_session_goes_on(
    harness: Harness, version: int, *, resumed: bool
) -> None:
    first = harness.persistent("c", version)
    assert not first.connack.session_present
    first.subscribe("a")
    first.drop()
    second = harness.persistent("c", version, clean_start=not resumed)
    # MQTT 3.1 has no such flag
    assert second.connack.session_present == (resumed and version != MQTT_3_1)
    harness.publish("a")
    assert bool(second.take()) == resumed


@pytest.mark.parametrize("version", VERSIONS)
def test_a_clean_session_ends_with_its_connection(harness: Harness, version: int) -> None:
    harness.connect("c", version).drop()
    assert not harness.broker.sessions
    assert not harness.persistent("c", version).connack.session_present


def test_mqtt_5_without_an_expiry_interval_ends_with_its_connection(harness: Harness) -> None:
    harness.connect("c", clean_start=False).drop()
    assert not harness.broker.sessions


def test_an_empty_client_identifier_is_assigned_in_mqtt_5(harness: Harness) -> None:
    first, second = harness.connect(""), harness.connect("")
    assert first.connack.properties.assigned_client_identifier == "assigned-1"
    assert second.connack.properties.assigned_client_identifier == "assigned-2"
    assert set(harness.broker.clients) == {"assigned-1", "assigned-2"}
    assert harness.connect("c").connack.properties.assigned_client_identifier is None


def test_an_empty_client_identifier_of_mqtt_3_1_1_needs_a_clean_session(harness: Harness) -> None:
    assert harness.connect("", MQTT_3_1_1).connack == ConnAck()
    client = harness.open(MQTT_3_1_1)
    client.send(Connect("", MQTT_3_1_1, clean_start=False))
    assert client.take() == [ConnAck(False, ReasonCode.CLIENT_IDENTIFIER_NOT_VALID)]
    assert client.closed()
    assert harness.counters.count("tidegate/clients/refused") == 1


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
    "no user name": (
        Connect("c"),
        ReasonCode.NOT_AUTHORIZED,
        "this listener wants a user name",
    ),
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
    client = harness.open(authenticator=Users())
    client.send(connect, PingReq())
    assert client.take() == [ConnAck(False, code, Properties(reason_string=reason))]
    assert client.closed()
    assert not harness.broker.sessions
    assert caplog.record_tuples == [
        (
            "gateway.broker.connack",
            logging.WARNING,
            f"refused client 'c' at 192.0.2.7:40000: {reason} (0x{code:02X})",
        )
    ]


@pytest.mark.parametrize("version", VERSIONS)
def test_a_known_user_is_accepted(harness: Harness, version: int) -> None:
    client = harness.connect(
        "c", version, authenticator=Users(), username="anna", password=b"secret"
    )
    client.subscribe("a")
    client.send(Publish("a"))
    assert harness.session().username == "anna"


@pytest.mark.parametrize("username", ["anna", None])
def test_mqtt_3_1_1_is_refused_with_its_return_code(harness: Harness, username: str | None) -> None:
    client = harness.open(MQTT_3_1_1, Users())
    client.send(Connect("c", MQTT_3_1_1, username=username))
    code = ReasonCode.BAD_USER_NAME_OR_PASSWORD if username else ReasonCode.NOT_AUTHORIZED
    assert client.take() == [ConnAck(False, code)]
    assert client.closed()


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
    (connack,) = client.take()
    assert isinstance(connack, ConnAck)
    assert connack.properties.reason_string is not None
    assert len(connack.properties.reason_string) < 500


def test_a_reason_that_does_not_fit_is_left_out(harness: Harness) -> None:
    client = harness.open()
    properties = Properties(authentication_method="x", maximum_packet_size=20)
    client.send(Connect("c", properties=properties))
    assert client.take() == [ConnAck(False, ReasonCode.BAD_AUTHENTICATION_METHOD)]


def test_a_second_connect_is_a_protocol_error(harness: Harness) -> None:
    client = harness.connect()
    client.send(Connect("c"))
    assert client.take() == [
        Disconnect(ReasonCode.PROTOCOL_ERROR, Properties(reason_string="a second CONNECT"))
    ]
    assert client.closed()


@pytest.mark.parametrize("version", VERSIONS)
def test_a_client_takes_over_its_own_session(harness: Harness, version: int) -> None:
    first = harness.persistent("c", version)
    first.subscribe("a")
    second = harness.persistent("c", version)
    assert second.connack.session_present == (version != MQTT_3_1)
    assert first.closed()
    if version == MQTT_5:
        (disconnect,) = first.take()
        assert isinstance(disconnect, Disconnect)
        assert disconnect.reason_code == ReasonCode.SESSION_TAKEN_OVER
    else:
        assert not first.take()
    harness.publish("a")
    assert second.take() == [Publish("a", b"x")]
    assert list(harness.broker.clients) == ["c"]


def test_a_take_over_with_clean_start_ends_the_old_session(harness: Harness) -> None:
    harness.persistent().subscribe("a")
    second = harness.persistent(clean_start=True)
    assert not second.connack.session_present
    harness.publish("a")
    assert not second.take()
    assert len(harness.broker.router) == 0


def test_a_take_over_of_a_connection_that_is_closing_already(harness: Harness) -> None:
    first = harness.persistent()
    first.reads = False
    first.send(Disconnect())
    second = harness.persistent()
    assert second.connack.session_present
    first.reads = True
    harness.settle()
    assert first.closed()
    assert not first.take()
    assert list(harness.broker.clients) == ["c"]


def test_connecting_is_logged_with_the_version(
    harness: Harness, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    for client_id, version in zip("abc", VERSIONS, strict=True):
        harness.connect(client_id, version)
    assert caplog.messages == []
    tell_admitted(harness.broker)
    (lines,) = caplog.messages
    assert lines.split("\n") == [
        "client 'a' connected from 192.0.2.7:40000 (MQTT 3.1)",
        "client 'b' connected from 192.0.2.7:40000 (MQTT 3.1.1)",
        "client 'c' connected from 192.0.2.7:40000 (MQTT 5)",
    ]


def test_a_line_that_nobody_wants_is_not_kept(
    harness: Harness, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.WARNING, "gateway.broker.connack")
    harness.connect("a")
    tell_admitted(harness.broker)
    assert caplog.messages == []
    assert harness.broker.admitted == []


def test_a_turn_without_end_holds_back_so_many_lines(
    harness: Harness, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    for number in range(ADMITTED - 1):
        harness.connect(f"c{number}").drop()
    assert not caplog.messages
    harness.connect("last")
    (lines,) = caplog.messages
    assert lines.count("\n") + 1 == ADMITTED
    assert harness.broker.admitted == []
