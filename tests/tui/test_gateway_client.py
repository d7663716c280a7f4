import socket
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest
from textual.message import Message

from tests.support.ports import free_port
from tests.support.processes.mosquitto import Mosquitto
from tests.support.processes.tui_publisher import TOPICS, Publisher
from tests.support.waiting import until
from tui.address import Address
from tui.gateway_client import GatewayClient
from tui.inbox import Arrival, Inbox
from tui.link import Link, Phase
from tui.messages import LinkChanged, OrderAnswered, SubscriptionRefused

pytestmark = pytest.mark.mosquitto


class Watched:
    """A client that subscribes as its owner would, and all that it posted."""

    def __init__(self, port: int, username: str | None = None, password: str | None = None) -> None:
        self.posted: list[Message] = []
        self.client = GatewayClient(
            Address("127.0.0.1", port, username, password), self._take, TOPICS
        )

    def _take(self, message: Message) -> None:
        self.posted.append(message)
        if isinstance(message, LinkChanged) and message.link.phase is Phase.CONNECTED:
            self.client.subscribe()

    @property
    def links(self) -> list[Link]:
        return [message.link for message in self.posted if isinstance(message, LinkChanged)]

    @property
    def phases(self) -> list[Phase]:
        return [link.phase for link in self.links]

    def posted_a(self, kind: type[Message]) -> bool:
        return any(isinstance(message, kind) for message in self.posted)


@pytest.fixture
def watched(mosquitto: Mosquitto) -> Iterator[Watched]:
    one = Watched(mosquitto.port)
    one.client.start()
    yield one
    one.client.stop()


def taken(inbox: Inbox) -> Arrival:
    until(lambda: len(inbox))
    arrival = inbox.take()
    assert arrival is not None
    return arrival


def test_figures_and_readings_take_their_own_inbox(watched: Watched, publisher: Publisher) -> None:
    publisher.tell(uptime="5 seconds")
    publisher.publish("sensors/n1/t", b"\xff\x00")
    figure = taken(watched.client.figures)
    assert (figure.topic, figure.payload) == ("told/broker/uptime", b"5 seconds")
    reading = taken(watched.client.readings)
    assert (reading.topic, reading.payload, reading.retained) == (
        "sensors/n1/t",
        b"\xff\x00",
        False,
    )


def test_retained_messages_are_marked(mosquitto: Mosquitto, publisher: Publisher) -> None:
    publisher.tell(uptime="5 seconds")
    late = Watched(mosquitto.port)
    late.client.start()
    assert taken(late.client.figures).retained
    late.client.stop()


def test_it_says_when_it_connects(watched: Watched) -> None:
    until(lambda: watched.phases == [Phase.CONNECTING, Phase.CONNECTED])


def test_it_comes_back_when_the_gateway_does(watched: Watched, mosquitto: Mosquitto) -> None:
    until(lambda: Phase.CONNECTED in watched.phases)
    mosquitto.kill()
    until(lambda: watched.phases[-1] is Phase.WAITING)
    first = next(link for link in watched.links if link.phase is Phase.WAITING)
    assert (first.attempt, first.reason) == (1, "the connection was lost")
    mosquitto.start()
    watched.client.retry_now()
    until(lambda: watched.phases[-1] is Phase.CONNECTED)
    publisher = Publisher(mosquitto.port)
    publisher.publish("sensors/n1/t", b"1")
    assert taken(watched.client.readings).payload == b"1"
    publisher.close()


def test_attempts_are_counted_and_their_delay_grows() -> None:
    nobody = Watched(free_port())
    nobody.client.start()
    until(lambda: nobody.phases.count(Phase.WAITING) == 1)
    nobody.client.retry_now()
    until(lambda: nobody.phases.count(Phase.WAITING) == 2)
    nobody.client.stop()
    waits = [link for link in nobody.links if link.phase is Phase.WAITING]
    assert [link.attempt for link in waits] == [2, 3]
    assert waits[0].reason == "connection refused"


def test_stop_cuts_a_wait_short() -> None:
    nobody = Watched(free_port())
    nobody.client.start()
    until(lambda: Phase.WAITING in nobody.phases)
    nobody.client.stop()
    assert nobody.phases == [Phase.CONNECTING, Phase.WAITING]


def test_an_order_is_sent_and_answered(watched: Watched, publisher: Publisher) -> None:
    until(lambda: Phase.CONNECTED in watched.phases)
    watched.client.order_uplink("pause")
    until(lambda: publisher.orders == ["pause"])
    until(lambda: watched.posted_a(OrderAnswered))
    assert [m.refusal for m in watched.posted if isinstance(m, OrderAnswered)] == [""]


def test_an_order_without_a_connection_is_forgotten(mosquitto: Mosquitto) -> None:
    mosquitto.kill()
    late = Watched(mosquitto.port)
    late.client.order_uplink("pause")
    late.client.start()
    until(lambda: Phase.WAITING in late.phases)
    mosquitto.start()
    publisher = Publisher(mosquitto.port)
    late.client.retry_now()
    until(lambda: Phase.CONNECTED in late.phases)
    late.client.order_uplink("resume")
    until(lambda: publisher.orders)
    assert publisher.orders == ["resume"]
    publisher.close()
    late.client.stop()


@pytest.fixture
def closed_mosquitto(tmp_path: Path) -> Iterator[Mosquitto]:
    """A running Mosquitto that lets nobody in."""
    broker = Mosquitto(tmp_path, "allow_anonymous false\n")
    broker.start()
    yield broker
    broker.kill()


def test_a_refused_login_says_so(closed_mosquitto: Mosquitto) -> None:
    stranger = Watched(closed_mosquitto.port, "u", "wrong")
    stranger.client.start()
    until(lambda: Phase.WAITING in stranger.phases)
    stranger.client.stop()
    assert stranger.links[-1].reason == "the gateway refused the connection: Not authorized"


@pytest.mark.parametrize(
    "answer",
    [
        b"HTTP/1.1 400 Bad Request\r\n\r\n",
        b"\x20\x03\x00\x00\x00\x90\x03\x00\x01\xff\xff",
        b"\x20\x03\x00\x00\x00\x31\x05\x00\x03\xff\xff\xff",
        b"\x20\x03\x00\x00\x00" + b"\x30\xff\xff\xff\xff",
        b"\x20\x03\x00\x00\x00" + bytes(range(256)),
        b"",
    ],
    ids=("not MQTT", "odd SUBACK", "topic not UTF-8", "length too long", "all bytes", "nothing"),
)
def test_a_peer_that_does_not_speak_mqtt_ends_only_the_connection(answer: bytes) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        watched = Watched(int(server.getsockname()[1]))
        watched.client.start()
        accepted, _ = server.accept()
        accepted.recv(1_000)
        accepted.sendall(answer)
        with suppress(OSError):  # the client may have gone already
            accepted.shutdown(socket.SHUT_WR)
        until(lambda: Phase.WAITING in watched.phases)
        assert watched.links[-1].reason
        watched.client.stop()
        accepted.close()


def test_a_refused_subscription_is_posted() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        watched = Watched(int(server.getsockname()[1]))
        watched.client.start()
        accepted, _ = server.accept()
        accepted.recv(1_000)
        accepted.sendall(b"\x20\x03\x00\x00\x00")
        received = b""
        while received.count(b"\x82") < 2:
            received += accepted.recv(1_000)
        identifiers = received[2:4], received[received.index(b"\x82", 1) :][2:4]
        accepted.sendall(b"\x90\x04" + identifiers[0] + b"\x00\x87")
        accepted.sendall(b"\x90\x04" + identifiers[1] + b"\x00\x00")
        until(lambda: watched.posted_a(SubscriptionRefused))
        watched.client.stop()
        accepted.close()
    refused = [m for m in watched.posted if isinstance(m, SubscriptionRefused)]
    assert [(m.topic_filter, m.reason) for m in refused] == [("told/#", "Not authorized")]
