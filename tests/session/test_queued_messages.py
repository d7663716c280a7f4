from collections.abc import Callable
from unittest import mock

import pytest

from gateway.counters import Counters
from gateway.mqtt.alias_budget import AliasBudget
from gateway.mqtt.connection import MAXIMUM_UNSENT, NO_LIMIT, Connection
from gateway.mqtt.outbound_aliases import OutboundAliases
from gateway.mqtt.packets import MQTT_3_1_1, MQTT_5
from gateway.routing.where.message import Message
from gateway.session.delivery import Delivery
from gateway.session.inflight import MAXIMUM_BYTES
from gateway.session.limits import SessionLimits
from gateway.session.queued_messages import send_queued
from gateway.session.session import Session

SEND = "gateway.session.sending.send_queued"


def waiting(deliveries: list[Delivery]) -> Session:
    session = Session("c", Counters(), SessionLimits(maximum_inflight=50))
    session.expiry_interval = 60
    for delivery in deliveries:
        session.queue.restore(delivery)
    return session


def sent(session: Session, change: Callable[[Connection], None], version: int) -> list[object]:
    """Return all that a client gets, in which packets, and what the session counts then."""
    connection = Connection(NO_LIMIT)
    connection.version = version
    change(connection)
    session.attach(connection, 65_535)
    session.pump(5.0)
    traffic, memory = session.traffic, session.limits.memory
    return [
        bytes(connection.data_to_send(0) or b""),
        connection.packets_sent,
        (traffic.messages_sent, traffic.bytes_sent),
        [(number, each.delivery.message.payload) for number, each in session.inflight.items()],
        session.inflight.room,
        (len(session.queue), session.queue.bytes, memory.bytes, memory.deliveries),
        session.counters.count("publish/messages/dropped"),
        session.counters.count("publish/messages/expired"),
    ]


def plain(count: int, size: int = 10) -> list[Delivery]:
    return [
        Delivery(Message(f"t/{n % 3}", b"%d" % n * size, 1), 1, retain=n % 5 == 0)
        for n in range(count)
    ]


QUEUES = {
    "few": plain(1),
    "as many as fit": plain(50),
    "more": plain(70),
    "large": plain(20, MAXIMUM_BYTES // 10),
    "all kinds": [
        *plain(3),
        Delivery(Message("a", b"0"), 0),
        *plain(2),
        Delivery(Message("a", b"2", 2), 2),
        *plain(2),
        Delivery(Message("a", b"gone", 1, message_expiry=3), 1),
        Delivery(Message("a", b"expires", 1, message_expiry=9), 1),
        *plain(2),
        Delivery(Message("a", b"text", 1, content_type="text/plain"), 1),
        Delivery(Message("a", b"named", 1), 1, subscription_identifiers=(3,)),
        *plain(3),
        Delivery(Message("a", bytes(600), 1), 1),
        *plain(3),
    ],
}


def nothing(_connection: Connection) -> None:
    """Change nothing."""


def small_packets(connection: Connection) -> None:
    connection.maximum_packet_size = 500


def nearly_congested(connection: Connection) -> None:
    connection.send_encoded(bytes(MAXIMUM_UNSENT - 100))


def aliases(connection: Connection) -> None:
    connection.outbound_aliases = OutboundAliases(2, NO_LIMIT, AliasBudget(1000, 1000, 1000))


@pytest.mark.parametrize("queue", QUEUES.values(), ids=QUEUES)
@pytest.mark.parametrize("version", [MQTT_3_1_1, MQTT_5])
@pytest.mark.parametrize("change", [nothing, small_packets, aliases])
def test_what_is_sent_is_the_same_as_one_by_one(
    queue: list[Delivery], version: int, change: Callable[[Connection], None]
) -> None:
    session = waiting(queue)
    found = sent(session, change, version)
    session.discard()  # gives back what the messages count
    with mock.patch(SEND, return_value=False):
        assert found == sent(waiting(queue), change, version)


def test_many_leave_at_once() -> None:
    session = waiting(plain(40))
    with mock.patch(SEND, wraps=send_queued) as at_once:
        assert len(sent(session, nothing, MQTT_3_1_1)[3]) == 40  # type: ignore[arg-type]  # a list
    assert at_once.call_count == 1


def test_a_slow_reader_gets_what_there_is_room_for() -> None:
    session = waiting(plain(40))
    found = sent(session, nearly_congested, MQTT_3_1_1)
    assert 0 < len(found[3]) < 10  # type: ignore[arg-type]  # a list
    assert len(session.queue) == 40 - len(session.inflight)
