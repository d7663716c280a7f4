"""Enhanced authentication (MQTT 5, section 4.12) with a method that only these tests know."""

import pytest

from gateway.broker.client import SHOWN
from gateway.broker.connecting.connection_info import (
    AuthenticationFailedError,
    ConnectionInfo,
    Exchange,
    Step,
)
from gateway.mqtt.packets import (
    Auth,
    ConnAck,
    Connect,
    Disconnect,
    Packet,
    PingReq,
    PingResp,
    Publish,
    Will,
)
from gateway.mqtt.properties import Properties
from gateway.mqtt.reason_codes import ReasonCode
from tests.support.broker.broker_harness import Harness
from tests.support.broker.memory_client import MemoryClient
from tests.support.broker.users import Users

CONTINUE = ReasonCode.CONTINUE_AUTHENTICATION
AGAIN = ReasonCode.RE_AUTHENTICATE
METHOD = "name-and-answer"


class NameAndAnswer:
    """Wants a name, then the same name backwards; `short` is let in at once, as `anna`."""

    name = METHOD

    def begin(self) -> Exchange:
        return Conversation()


class Conversation:
    def __init__(self) -> None:
        self.username = ""

    def step(self, data: bytes | None) -> Step:
        if data is None:
            raise AuthenticationFailedError("no name")
        text = data.decode()
        if text == "short":
            return Step(username="anna")
        if not self.username:
            self.username = text
            return Step(b"backwards?")
        if text != self.username[::-1]:
            raise AuthenticationFailedError("wrong answer")
        return Step(b"welcome", self.username)


def said(data: bytes | None, method: str | None = METHOD) -> Properties:
    return Properties(authentication_method=method, authentication_data=data)


def open_client(harness: Harness) -> MemoryClient:
    info = ConnectionInfo(authentication_methods={METHOD: NameAndAnswer()})
    return harness.open(authenticator=Users(), info=info)


def connect(harness: Harness, data: bytes | None = b"anna", **fields: object) -> MemoryClient:
    """Return a client that has begun to authenticate."""
    client = open_client(harness)
    client.send(Connect("c", properties=said(data), **fields))  # type: ignore[arg-type]  # by name
    return client


def connected(harness: Harness) -> MemoryClient:
    client = connect(harness)
    client.send(Auth(CONTINUE, said(b"anna")))
    assert len(client.take()) == 2
    return client


def code_of(packets: list[Packet]) -> ReasonCode:
    (packet,) = packets
    assert isinstance(packet, ConnAck | Disconnect)
    return packet.reason_code


def test_a_client_proves_who_it_is(harness: Harness) -> None:
    client = connect(harness)
    assert client.take() == [Auth(CONTINUE, said(b"backwards?"))]
    assert not harness.broker.sessions
    client.send(Auth(CONTINUE, said(b"anna")))
    connack = client.take_only(ConnAck)
    assert connack.reason_code == ReasonCode.SUCCESS
    assert connack.properties.authentication_method == METHOD
    assert connack.properties.authentication_data == b"welcome"
    assert harness.session().username == "anna"
    client.send(PingReq())
    assert client.take() == [PingResp()]


def test_a_method_may_need_one_step_only(harness: Harness) -> None:
    client = connect(harness, b"short")
    connack = client.take_only(ConnAck)
    assert connack.properties.authentication_method == METHOD
    assert connack.properties.authentication_data is None
    assert harness.session().username == "anna"


@pytest.mark.parametrize("connect_data", [b"anna", None], ids=["wrong answer", "no name"])
def test_who_cannot_prove_it_is_refused(harness: Harness, connect_data: bytes | None) -> None:
    client = connect(harness, connect_data)
    if connect_data is not None:
        assert len(client.take()) == 1
        client.send(Auth(CONTINUE, said(b"berta")))
    assert code_of(client.take()) == ReasonCode.NOT_AUTHORIZED
    assert client.closed()
    assert harness.counters.count("tidegate/clients/refused") == 1


def test_what_else_stands_against_a_client_still_does(harness: Harness) -> None:
    client = connect(harness, b"short", will=Will("$SYS/x", b""))
    assert code_of(client.take()) == ReasonCode.NOT_AUTHORIZED


def test_without_a_method_name_and_password_count(harness: Harness) -> None:
    client = open_client(harness)
    client.send(Connect("c"))
    assert code_of(client.take()) == ReasonCode.NOT_AUTHORIZED


@pytest.mark.parametrize("method", ["other", "", "x" * (SHOWN + 20)])
def test_an_unknown_method_is_refused(harness: Harness, method: str) -> None:
    client = open_client(harness)
    client.send(Connect("c", properties=said(b"anna", method)))
    assert code_of(client.take()) == ReasonCode.BAD_AUTHENTICATION_METHOD
    assert client.closed()


WRONG_WHILE_CONNECTING = [
    Auth(AGAIN, said(b"anna")),
    Auth(ReasonCode.SUCCESS, said(b"anna")),
    Auth(CONTINUE, said(b"anna", "other")),
    Auth(),
    PingReq(),
    Publish("a"),
    Connect("c"),
]


@pytest.mark.parametrize("packet", WRONG_WHILE_CONNECTING, ids=lambda packet: str(packet)[:40])
def test_before_connack_there_is_only_the_conversation(harness: Harness, packet: Packet) -> None:
    client = connect(harness)
    client.take()
    client.send(packet)
    assert code_of(client.take()) == ReasonCode.PROTOCOL_ERROR
    assert client.closed()
    assert not harness.broker.sessions


def test_a_client_may_give_up(harness: Harness) -> None:
    client = connect(harness)
    client.take()
    client.send(Disconnect())
    assert not client.take()
    assert client.closed()


def test_the_conversation_has_to_end_in_time(harness: Harness) -> None:
    client = connect(harness)
    harness.pass_time(harness.broker.settings.connect_timeout)
    assert client.closed()


def test_a_client_may_prove_it_again(harness: Harness) -> None:
    client = connected(harness)
    for _ in range(2):
        client.send(Auth(AGAIN, said(b"anna")), PingReq())
        assert client.take() == [Auth(CONTINUE, said(b"backwards?")), PingResp()]
        client.send(Auth(CONTINUE, said(b"anna")))
        assert client.take() == [Auth(ReasonCode.SUCCESS, said(b"welcome"))]
    assert not client.closed()


@pytest.mark.parametrize(
    "steps", [[b"anna", b"berta"], [b"berta", b"atreb"]], ids=["wrong answer", "another user"]
)
def test_who_cannot_prove_it_again_is_disconnected(harness: Harness, steps: list[bytes]) -> None:
    client = connected(harness)
    first, second = steps
    client.send(Auth(AGAIN, said(first)))
    assert len(client.take()) == 1
    client.send(Auth(CONTINUE, said(second)))
    assert code_of(client.take()) == ReasonCode.NOT_AUTHORIZED
    assert client.closed()


@pytest.mark.parametrize(
    "packet",
    [
        Auth(CONTINUE, said(b"anna")),
        Auth(AGAIN, said(b"anna", "other")),
        Auth(ReasonCode.SUCCESS, said(None)),
    ],
    ids=["not begun", "another method", "success"],
)
def test_what_does_not_fit_a_connection_is_a_protocol_error(harness: Harness, packet: Auth) -> None:
    client = connected(harness)
    client.send(packet)
    assert code_of(client.take()) == ReasonCode.PROTOCOL_ERROR
    assert client.closed()


def test_a_second_beginning_is_a_protocol_error(harness: Harness) -> None:
    client = connected(harness)
    client.send(Auth(AGAIN, said(b"anna")), Auth(AGAIN, said(b"anna")))
    challenge, *rest = client.take()
    assert isinstance(challenge, Auth)
    assert code_of(rest) == ReasonCode.PROTOCOL_ERROR


def test_without_a_method_at_connect_there_is_no_auth(harness: Harness) -> None:
    client = harness.connect()
    client.send(Auth(AGAIN, said(b"anna", "x")))
    assert code_of(client.take()) == ReasonCode.PROTOCOL_ERROR


def test_auth_before_connect_is_a_protocol_error(harness: Harness) -> None:
    client = open_client(harness)
    client.send(Auth(CONTINUE, said(b"anna")))
    assert client.closed()
    assert not client.take()
