"""MQTT over WebSocket (MQTT 5, chapter 6)."""

from collections.abc import Callable, Iterator

import pytest

from tests.conformance.support import wire
from tests.conformance.support.limited_gateway import Ports
from tests.conformance.support.peer import Peer, Peers
from tests.conformance.support.statements import keeps
from tests.conformance.support.websocket import CONTINUATION, TEXT, WebSocket, frame


@pytest.fixture
def web(ports: Ports) -> Iterator[Callable[..., WebSocket]]:
    """Opens WebSocket connections."""
    connections: list[WebSocket] = []

    def open_one(protocols: str = "mqtt") -> WebSocket:
        connections.append(WebSocket(ports.websocket, protocols))
        return connections[-1]

    yield open_one
    for each in connections:
        each.close()


WELCOME = b"\x20\x02\x00\x00"


def old_connect(name: str) -> bytes:
    return wire.connect(wire.MQTT_3_1_1, name)


@keeps("5:6.0.0-4", "3.1.1:6.0.0-4")
@pytest.mark.parametrize("offered", ["mqtt", "chat, mqtt", "mqtt, mqttv3.1"])
def test_the_subprotocol_is_mqtt(web: Callable[..., WebSocket], offered: str) -> None:
    connection = web(offered)
    assert connection.status == 101
    assert connection.fields["sec-websocket-protocol"] == "mqtt"


@keeps("5:6.0.0-2", "3.1.1:6.0.0-2")
@pytest.mark.parametrize("size", [1, 3, 1000])
def test_frames_need_not_be_packets(
    web: Callable[..., WebSocket], name: Callable[[], str], size: int
) -> None:
    connection = web()
    version, topic = wire.MQTT_3_1_1, name()
    publish = wire.publish(version, topic, b"." * 300)
    data = old_connect(name()) + wire.subscribe(version, 1, (topic, 0)) + publish + wire.PINGREQ
    connection.send(*(frame(data[place : place + size]) for place in range(0, len(data), size)))
    connection.expect(WELCOME + wire.suback(version, 1, 0) + publish + wire.PINGRESP)


@keeps("5:6.0.0-2", "3.1.1:6.0.0-2")
def test_a_message_of_several_frames(
    web: Callable[..., WebSocket], name: Callable[[], str]
) -> None:
    connection = web()
    data = old_connect(name()) + wire.PINGREQ
    connection.send(frame(data[:5], final=False), frame(data[5:], CONTINUATION))
    connection.expect(WELCOME + wire.PINGRESP)


@keeps("5:6.0.0-1", "3.1.1:6.0.0-1")
@pytest.mark.parametrize("data", [b"", wire.PINGREQ, b"text"])
def test_a_frame_of_text_ends_the_connection(
    web: Callable[..., WebSocket], name: Callable[[], str], data: bytes
) -> None:
    connection = web()
    connection.send(frame(old_connect(name())))
    connection.expect(WELCOME)
    connection.send(frame(data.replace(b"\xc0", b"c"), TEXT))
    connection.expect_end()


def test_a_peer_of_the_websocket_listener_is_a_peer_like_any_other(
    web: Callable[..., WebSocket], ports: Ports, name: Callable[[], str]
) -> None:
    connection, peers = web(), Peers(ports.limits, name)
    topic = peers.topic
    connection.send(
        frame(old_connect(peers.name()) + wire.subscribe(wire.MQTT_3_1_1, 1, (topic, 1)))
    )
    connection.expect(WELCOME + wire.suback(wire.MQTT_3_1_1, 1, 1))
    publisher: Peer = peers.connect()
    publisher.publish(topic, b"x", 1)
    connection.expect(wire.publish(wire.MQTT_3_1_1, topic, b"x", 1, 1))
    peers.close()
