from collections.abc import Sequence
from typing import Any

import pytest

from gateway.counters import Counters
from gateway.mqtt.alias_budget import AliasBudget
from gateway.mqtt.connection import MAXIMUM_UNSENT, NO_LIMIT, Connection
from gateway.mqtt.decode import decode
from gateway.mqtt.framing import Framer
from gateway.mqtt.outbound_aliases import OutboundAliases
from gateway.mqtt.packets import MQTT_3_1_1, MQTT_5, Publish
from gateway.mqtt.plain_message import Origin, PlainMessage
from gateway.routing.where.message import Message
from gateway.session import replay as module
from gateway.session.session import Session


def attached(version: int) -> tuple[Session, Connection]:
    session, connection = Session("c", Counters()), Connection(NO_LIMIT)
    connection.version = version
    session.attach(connection, 10)
    return session, connection


def sent(session: Session, connection: Connection) -> list[Publish]:
    """Return what the client gets when it reads all that comes, and acknowledges nothing."""
    framer = Framer(NO_LIMIT)
    while (data := connection.data_to_send(0)) is not None:
        framer.feed(bytes(data))
        session.pump(0.0)
    found = []
    while (frame := framer.next_frame()) is not None:
        packet = decode(*frame, connection.version)
        assert isinstance(packet, Publish)
        found.append(packet)
    return found


def plain(topic: str, payload: bytes, qos: int) -> PlainMessage:
    return PlainMessage(topic, payload, Origin("p", None, qos, 0, 0.0, 0.0))


def whole(message: PlainMessage) -> Message:
    return Message(message.topic, message.payload, message.origin.qos)


def replay(
    session: Session, messages: Sequence[Message | PlainMessage], qos: int, *more: Any
) -> None:
    module.replay(session, list(messages), whole, qos, *more)


MESSAGES: list[Message | PlainMessage] = [
    Message("a", b"1", 1),
    Message("b", b"2", 0),
    Message("c", b"3", 0, content_type="text/plain"),
    Message("d", b"4", 2),
    Message("e", b"5", 0),
    Message("f", b"6", 0),
    plain("g", b"7", 1),
    plain("h", b"8", 0),
]


@pytest.mark.parametrize("qos", [0, 1, 2])
@pytest.mark.parametrize("version", [MQTT_3_1_1, MQTT_5])
@pytest.mark.parametrize("identifiers", [(), (300,)])
@pytest.mark.parametrize("aliases", [False, True])
def test_everything_comes_in_order_as_it_would_one_by_one(
    version: int, qos: int, identifiers: tuple[int, ...], aliases: bool
) -> None:
    session, connection = attached(version)
    if aliases and version == MQTT_5:
        connection.outbound_aliases = OutboundAliases(5, NO_LIMIT, AliasBudget(1000, 1000, 1000))
    replay(session, MESSAGES, qos, identifiers, 0.0)
    assert connection.packets_sent == session.traffic.messages_sent == len(MESSAGES)
    assert session.traffic.bytes_sent == len(MESSAGES)
    found = sent(session, connection)
    assert [packet.payload for packet in found] == [each.payload for each in MESSAGES]
    for packet, kept in zip(found, MESSAGES, strict=True):
        message = whole(kept) if isinstance(kept, PlainMessage) else kept
        assert (packet.qos, packet.retain, packet.dup) == (min(qos, message.qos), True, False)
        if version == MQTT_5:
            assert packet.properties.content_type == message.content_type
            assert packet.properties.subscription_identifiers == identifiers


def test_who_reads_slowly_gets_the_rest_later() -> None:
    session, connection = attached(MQTT_3_1_1)
    size = MAXIMUM_UNSENT // 10
    messages = [Message(str(number), bytes(size)) for number in range(25)]
    replay(session, messages, 0, (), 0.0)
    assert connection.congested
    assert connection.output.size < MAXIMUM_UNSENT + 2 * size
    assert len(session.queue) == 25 - connection.packets_sent
    found = sent(session, connection)
    assert [packet.topic for packet in found] == [message.topic for message in messages]


def test_what_is_behind_others_waits_behind_them() -> None:
    session, connection = attached(MQTT_3_1_1)
    replay(session, [Message("a", b"1", 1)] * 11, 1, (), 0.0)  # one more than the window
    replay(session, [Message("b", b"2")], 0, (), 0.0)
    assert len(session.queue) == 2
    assert {packet.topic for packet in sent(session, connection)} == {"a"}


def test_what_is_too_large_for_the_client_is_left_out() -> None:
    session, connection = attached(MQTT_3_1_1)
    connection.maximum_packet_size = 20
    messages = [Message("a", b"1"), Message("b", bytes(20)), Message("c", b"3")]
    replay(session, messages, 0, (), 0.0)
    assert [packet.topic for packet in sent(session, connection)] == ["a", "c"]
    assert session.counters.count("publish/messages/dropped") == 1


def test_who_is_gone_gets_nothing() -> None:
    session = Session("c", Counters())
    replay(session, [Message("a", b"1")], 0, (), 0.0)
    assert not len(session.queue)
