"""paho-mqtt, the client that most Python programs use, in every version that it speaks."""

import queue
from collections.abc import Callable, Iterator
from typing import Any

import paho.mqtt.client as paho
import pytest
from paho.mqtt.enums import CallbackAPIVersion, MQTTProtocolVersion
from paho.mqtt.packettypes import PacketTypes
from paho.mqtt.properties import Properties
from paho.mqtt.subscribeoptions import SubscribeOptions

from tests.support.processes.gateway_process import GatewayProcess

VERSIONS = [MQTTProtocolVersion.MQTTv31, MQTTProtocolVersion.MQTTv311, MQTTProtocolVersion.MQTTv5]
FIVE = MQTTProtocolVersion.MQTTv5
SECONDS = 60.0


class Program:
    """A program that uses paho with its own network thread."""

    def __init__(self, client_id: str, version: MQTTProtocolVersion, *, lasting: bool) -> None:
        self.messages: queue.SimpleQueue[paho.MQTTMessage] = queue.SimpleQueue()
        self.events: queue.SimpleQueue[tuple[str, Any]] = queue.SimpleQueue()
        self._lasting = lasting
        self.client = paho.Client(
            CallbackAPIVersion.VERSION2,
            client_id,
            protocol=version,
            clean_session=None if version == FIVE else not lasting,
        )
        self.client.on_connect = lambda _c, _u, _f, code, _p: self.events.put(
            ("connect", code.is_failure)
        )
        self.client.on_subscribe = lambda _c, _u, _m, codes, _p: self.events.put(
            ("subscribe", [code.value for code in codes])
        )
        self.client.on_message = lambda _c, _u, message: self.messages.put(message)

    def start(self, port: int) -> None:
        """Connect; fails unless the broker accepts."""
        if self.client.protocol == FIVE:
            properties = Properties(PacketTypes.CONNECT)  # type: ignore[no-untyped-call]  # paho's own
            properties.SessionExpiryInterval = 60 if self._lasting else 0
            clean = not self._lasting
            self.client.connect("127.0.0.1", port, clean_start=clean, properties=properties)
        else:
            self.client.connect("127.0.0.1", port)
        self.client.loop_start()
        assert not self.happened("connect")

    def subscribe(self, topic_filter: str, qos: int) -> int:
        """Subscribe; return the granted QoS, or the reason code."""
        self.client.subscribe(topic_filter, qos)
        (code,) = self.happened("subscribe")
        return int(code)

    def publish(self, topic: str, payload: bytes, qos: int, **more: Any) -> None:
        """Publish, and wait until the broker has taken it."""
        self.client.publish(topic, payload, qos, **more).wait_for_publish(SECONDS)

    def receive(self, count: int = 1) -> list[paho.MQTTMessage]:
        return [self.messages.get(timeout=SECONDS) for _ in range(count)]

    def happened(self, what: str) -> Any:
        event, result = self.events.get(timeout=SECONDS)
        assert event == what
        return result

    def stop(self) -> None:
        self.client.disconnect()
        self.client.loop_stop()


Start = Callable[..., Program]


@pytest.fixture(params=VERSIONS, ids=lambda version: version.name)
def start(request: pytest.FixtureRequest, gateway: GatewayProcess) -> Iterator[Start]:
    """Give a function that starts a program which speaks one of the versions."""
    started = []

    def start(client_id: str, *, lasting: bool = False) -> Program:
        program = Program(client_id, request.param, lasting=lasting)
        started.append(program)
        program.start(gateway.port)
        return program

    yield start
    for program in started:
        program.stop()


@pytest.mark.parametrize("qos", [0, 1, 2])
def test_a_message_in_each_qos(start: Start, topic: str, qos: int) -> None:
    receiver, publisher = start(f"{topic}-r"), start(f"{topic}-p")
    assert receiver.subscribe(f"{topic}/#", qos) == qos
    publisher.publish(f"{topic}/a", b"\x00\xff", qos)
    (message,) = receiver.receive()
    assert (message.topic, message.payload, message.qos) == (f"{topic}/a", b"\x00\xff", qos)
    assert not message.retain


def test_a_thousand_messages_in_order(start: Start, topic: str) -> None:
    receiver, publisher = start(f"{topic}-r"), start(f"{topic}-p")
    receiver.subscribe(f"{topic}/#", 1)
    for number in range(1_000):
        last = publisher.client.publish(f"{topic}/a", b"%d" % number, 1)
    last.wait_for_publish(SECONDS)
    assert [int(message.payload) for message in receiver.receive(1_000)] == list(range(1_000))


def test_a_retained_message(start: Start, topic: str) -> None:
    start(f"{topic}-p").publish(f"{topic}/a", b"kept", 1, retain=True)
    receiver = start(f"{topic}-r")
    receiver.subscribe(f"{topic}/#", 1)
    (message,) = receiver.receive()
    assert (message.payload, message.retain) == (b"kept", True)


def test_a_will(start: Start, topic: str, gateway: GatewayProcess) -> None:
    receiver = start(f"{topic}-r")
    receiver.subscribe(f"{topic}/#", 1)
    leaver = Program(f"{topic}-l", receiver.client.protocol, lasting=False)
    leaver.client.will_set(f"{topic}/will", b"gone", 1)
    leaver.start(gateway.port)
    sock = leaver.client.socket()
    assert sock is not None
    leaver.client.loop_stop()
    sock.close()
    assert receiver.receive()[0].payload == b"gone"


def test_a_session_that_lasts(start: Start, topic: str) -> None:
    first = start(topic, lasting=True)
    assert first.subscribe(f"{topic}/#", 1) == 1
    first.stop()
    publisher = start(f"{topic}-p")
    for number in range(5):
        publisher.publish(f"{topic}/a", b"%d" % number, 1)
    second = start(topic, lasting=True)
    assert [message.payload for message in second.receive(5)] == [b"0", b"1", b"2", b"3", b"4"]


def test_properties_and_options_of_mqtt_5(gateway: GatewayProcess, topic: str) -> None:
    program = Program(topic, FIVE, lasting=False)
    program.start(gateway.port)
    program.client.subscribe(f"{topic}/#", options=SubscribeOptions(qos=1, retainAsPublished=True))
    program.happened("subscribe")
    properties = Properties(PacketTypes.PUBLISH)  # type: ignore[no-untyped-call]  # paho's own
    properties.ContentType = "text/plain"
    properties.UserProperty = [("site", "A"), ("site", "B")]
    properties.MessageExpiryInterval = 60
    program.publish(f"{topic}/a", b"x", 1, retain=True, properties=properties)
    (message,) = program.receive()
    assert message.retain
    received: Any = message.properties
    assert received.ContentType == "text/plain"
    assert received.UserProperty == [("site", "A"), ("site", "B")]
    assert received.MessageExpiryInterval in range(50, 61)
    program.stop()


def test_where_from_paho(gateway: GatewayProcess, topic: str) -> None:
    program = Program(topic, FIVE, lasting=False)
    program.start(gateway.port)
    properties = Properties(PacketTypes.SUBSCRIBE)  # type: ignore[no-untyped-call]  # paho's own
    properties.UserProperty = ("$where", "payload.value > 20")
    program.client.subscribe(f"{topic}/#", 1, properties=properties)
    assert program.happened("subscribe") == [1]
    for value in (19, 21):
        program.publish(f"{topic}/a", b'{"value":%d}' % value, 1)
    assert program.receive()[0].payload == b'{"value":21}'
    program.stop()
