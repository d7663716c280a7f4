import socket
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from queue import Empty

import pytest
from paho.mqtt.publish import single

from tests.support.ports import free_port
from tests.support.processes.gateway_process import GatewayProcess
from tests.support.processes.mosquitto import Mosquitto
from tests.support.waiting import until
from tui.address import Address
from tui.gateway_client import GatewayClient
from tui.inbox import Arrival, Inbox
from tui.link import Acknowledged, Answered, Link, LinkEvent, Phase, Subscribed

pytestmark = pytest.mark.mosquitto

FILTERS = ("told/#", "sensors/#")


class Watched:
    """A client that subscribes as its owner would, and all that it told."""

    def __init__(self, port: int, username: str | None = None, password: str | None = None) -> None:
        self._reported: list[LinkEvent] = []
        self._subscribed = False
        self.client = GatewayClient(Address("127.0.0.1", port, username, password))

    @property
    def events(self) -> list[LinkEvent]:
        with suppress(Empty):
            while True:
                events = self.client.events.get_nowait()
                self._reported.append(events)
                if isinstance(events, Link) and events.phase is Phase.CONNECTED:
                    self.client.subscribe(FILTERS)
        return self._reported

    @property
    def links(self) -> list[Link]:
        return [events for events in self.events if isinstance(events, Link)]

    @property
    def phases(self) -> list[Phase]:
        return [link.phase for link in self.links]

    def of(self, kind: type[LinkEvent]) -> list[LinkEvent]:
        return [events for events in self.events if isinstance(events, kind)]


def publish(port: int, topic: str, payload: bytes, *, retain: bool = False) -> None:
    single(topic, payload, qos=1, retain=retain, hostname="127.0.0.1", port=port)


@pytest.fixture
def watched(mosquitto: Mosquitto) -> Iterator[Watched]:
    one = Watched(mosquitto.port)
    one.client.start()
    yield one
    one.client.stop()


def subscribed(watched: Watched) -> None:
    until(lambda: len(watched.of(Subscribed)) == len(FILTERS))


def taken(inbox: Inbox) -> Arrival:
    until(lambda: len(inbox))
    arrival = inbox.pop()
    assert arrival is not None
    return arrival


def test_what_is_heard_is_in_the_inbox(watched: Watched, mosquitto: Mosquitto) -> None:
    subscribed(watched)
    publish(mosquitto.port, "sensors/n1/t", b"\xff\x00")
    heard = taken(watched.client.inbox)
    assert (heard.topic, heard.payload, heard.retained) == ("sensors/n1/t", b"\xff\x00", False)
    assert watched.client.received_at >= heard.at


def test_retained_messages_are_marked(mosquitto: Mosquitto) -> None:
    publish(mosquitto.port, "told/uptime", b"5 seconds", retain=True)
    late = Watched(mosquitto.port)
    late.client.start()
    subscribed(late)
    assert taken(late.client.inbox).retained
    late.client.stop()


def test_it_says_when_it_connects(watched: Watched) -> None:
    until(lambda: watched.phases == [Phase.CONNECTING, Phase.CONNECTED])


def test_it_comes_back_when_the_gateway_does(watched: Watched, mosquitto: Mosquitto) -> None:
    until(lambda: Phase.CONNECTED in watched.phases)
    mosquitto.kill()
    until(lambda: watched.phases[-1] is Phase.WAITING)
    first = next(link for link in watched.links if link.phase is Phase.WAITING)
    assert (first.attempt, first.reason) == (1, "the connection was lost")
    before = len(watched.of(Subscribed))
    mosquitto.start()
    watched.client.retry_now()
    until(lambda: watched.phases[-1] is Phase.CONNECTED)
    until(lambda: len(watched.of(Subscribed)) == before + len(FILTERS))
    publish(mosquitto.port, "sensors/n1/t", b"1")
    assert taken(watched.client.inbox).payload == b"1"


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


def test_what_is_published_is_acknowledged_with_its_key(watched: Watched) -> None:
    subscribed(watched)
    watched.client.publish("k", "sensors/x", b"1")
    until(lambda: watched.of(Acknowledged) == [Acknowledged("k", "")])
    assert taken(watched.client.inbox).payload == b"1"
    watched.client.unsubscribe(["sensors/#"])
    watched.client.order("o", "uplink", "pause")
    until(lambda: len(watched.of(Acknowledged)) == 2)


def test_a_query_has_a_puback_and_an_answer(gateway: GatewayProcess) -> None:
    asking = Watched(gateway.port)
    asking.client.start()
    until(lambda: Phase.CONNECTED in asking.phases)
    asking.client.subscribe_to_answers()
    until(lambda: len(asking.of(Subscribed)) == 1 + len(FILTERS))
    asking.client.ask("a", "status", b"{}")
    asking.client.ask("b", "nonsense", b"{}")
    asking.client.ask("c", "rejected", b'{"do":"retry","numbers":"all","uplink":"plant"}')
    until(lambda: len(asking.of(Answered)) == 3)
    answers = {each.key: each.payload for each in asking.of(Answered) if isinstance(each, Answered)}
    assert b'"gateway":"barn"' in answers["a"]
    assert b"there is no query 'nonsense'" in answers["b"]
    assert answers["c"] == b'{"done":true,"count":0}'
    until(lambda: len(asking.of(Acknowledged)) == 3)
    assert {each.refusal for each in asking.of(Acknowledged) if isinstance(each, Acknowledged)} == {
        "",
        "Payload format invalid",
    }
    asking.client.stop()
    until(lambda: "ended after" in gateway.log(), more=gateway.log)
    assert f"client '{asking.client.client_id}'" in gateway.log()
    assert ": DISCONNECT" in gateway.log()


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
    until(lambda: Phase.REFUSED in stranger.phases)
    assert stranger.links[-1].reason == "the gateway refused the connection: Not authorized"
    stranger.client.retry_now("right")
    until(lambda: stranger.phases.count(Phase.REFUSED) == 2)
    stranger.client.stop()
    assert Phase.WAITING not in stranger.phases


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


def test_a_refused_subscription_is_told() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        watched = Watched(int(server.getsockname()[1]))
        watched.client.start()
        accepted, _ = server.accept()
        accepted.recv(1_000)
        accepted.sendall(b"\x20\x03\x00\x00\x00")
        until(lambda: Phase.CONNECTED in watched.phases)
        received = accepted.recv(1_000)
        accepted.sendall(b"\x90\x05" + received[2:4] + b"\x00\x87\x00")
        until(lambda: watched.of(Subscribed))
        watched.client.stop()
        accepted.close()
    events = [Subscribed("told/#", "Not authorized"), Subscribed("sensors/#", "")]
    assert watched.of(Subscribed) == events
