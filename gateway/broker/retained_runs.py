"""Retained messages that nobody has subscribed to, one behind the other, each of its own topic."""

from typing import TYPE_CHECKING

from gateway.broker.access import may_publish
from gateway.broker.client import Client
from gateway.broker.instant import Instant
from gateway.mqtt.acknowledgement_run import alike
from gateway.mqtt.connection import NO_LIMIT, Connection
from gateway.mqtt.packets import PubAck, Publish
from gateway.mqtt.plain_message import Origin, PlainMessage
from gateway.mqtt.reason_codes import ReasonCode
from gateway.mqtt.received_runs import count_plain, next_byte, plain_publishes
from gateway.session.session import Session

if TYPE_CHECKING:
    from gateway.broker.broker import Broker

ANSWERED_AT_ONCE = 50
"""Messages that no disk is asked for and that are answered before those behind them are handled.

A client with a hundred in flight sends others meanwhile, where it would wait for us otherwise, and
we for it.
"""

KEPT_AT_ONCE = 1_000
"""Messages that are kept before others may have their turn: 256 KiB can be 25,000, which took half
a second."""

# Compiled, these are C names that no other module sees.
_ANSWERED_AT_ONCE = ANSWERED_AT_ONCE
_KEPT_AT_ONCE = KEPT_AT_ONCE


def keep(
    broker: "Broker", client: Client, session: Session, packet: Publish, instant: Instant
) -> bool:
    """Keep a retained message, and those behind it that ask for nothing else, and answer them.

    `packet` is of QoS 0 or 1 and without properties, and so are those that are taken with it.
    Returns False, with nothing done, for one that `handle_publish` is to handle: somebody gets
    it, there is no room for it, it has no payload, or something is wrong with it.
    """
    connection, qos = client.connection, packet.qos
    within = broker.durability_classes.commit_within(session.durability_class, packet.topic)
    if qos and within is not None and broker.store.full:
        return False
    room = connection.room_for_publishes if qos else NO_LIMIT
    if room < 1:
        return False
    at_once = qos > 0 and (within is None or not broker.store.keeps)
    most = _ANSWERED_AT_ONCE if at_once else _KEPT_AT_ONCE
    room = min(room, most)
    origin = Origin(
        session.client_id, session.username, qos, instant.wall, instant.monotonic, within
    )
    message = PlainMessage(packet.topic, packet.payload, origin)
    if not _keep(broker, session, message):
        return False
    packets = plain_publishes(connection, qos)
    kept, packet_ids = [message], [packet.packet_id]
    while len(kept) < room and packets.take():
        message = PlainMessage(packets.topic, packets.payload, origin)
        if not _keep(broker, session, message):
            packets.give_back()
            break
        kept.append(message)
        packet_ids.append(packets.packet_id)
    count_plain(connection, packets, qos * len(kept))
    broker.traffic.messages_received += len(kept)
    broker.traffic.bytes_received += sum([len(each.payload) for each in kept])
    gathered = broker.gathered
    broker.store.keep_retained_run(kept)
    if qos:
        waits = within is not None and broker.gathered != gathered
        _answer(connection, packet_ids, broker.durability.mark() if waits else 0)
    if len(kept) == most and next_byte(connection):
        broker.traffic.end_turn()
    return True


def _keep(broker: "Broker", session: Session, message: PlainMessage) -> bool:
    """Keep one message of a run, unless something is special about it."""
    topic = message.topic
    limits, router, retained = broker.topic_limits, broker.router, broker.retained
    if not message.payload or not may_publish(topic) or limits.fault(topic):
        return False
    classes = broker.durability_classes
    if classes.commit_within(session.durability_class, topic) != message.origin.commit_within:
        return False
    return not router.reaches(topic) and retained.set_plain(message)


def _answer(connection: Connection, packet_ids: list[int], mark: int) -> None:
    """Acknowledge the messages once the batch `mark` is on disk."""
    high = bytes([packet_id >> 8 for packet_id in packet_ids])
    low = bytes([packet_id & 0xFF for packet_id in packet_ids])
    packet = alike(PubAck, ReasonCode.NO_MATCHING_SUBSCRIBERS, connection.version)
    connection.answer_run(packet, high, low, mark)
    connection.output.note_acknowledgements(len(packet_ids))
