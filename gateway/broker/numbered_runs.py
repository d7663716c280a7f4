"""Runs at QoS 1 and 2: they get other packet identifiers, and are answered."""

from typing import TYPE_CHECKING, cast

from gateway.broker.client import Client
from gateway.broker.instant import Instant
from gateway.mqtt.acknowledgement_run import alike
from gateway.mqtt.connection import NO_LIMIT
from gateway.mqtt.message_size import message_bytes
from gateway.mqtt.output import Pledge
from gateway.mqtt.packets import PubAck, Publish, PubRec
from gateway.mqtt.reason_codes import ReasonCode
from gateway.routing.recipient import Recipient
from gateway.session import runs
from gateway.session.journal import NO_JOURNAL
from gateway.session.message_run import MessageRun
from gateway.session.session import Session
from gateway.session.traffic import TURN_BYTES

if TYPE_CHECKING:
    from gateway.broker.broker import Broker


def pass_on(
    broker: "Broker",
    client: Client,
    session: Session,
    packet: Publish,
    recipients: list[Recipient],
    instant: Instant,
) -> bool:
    """Pass a message of QoS 1 or 2, and those behind it, on to all of its `recipients`.

    That is for as many as everyone has room for at once. Returns False, with nothing done, as
    `runs.pass_on` does, which has looked at the message itself.
    """
    connection, qos, topic = client.connection, packet.qos, packet.topic
    within = broker.durability_classes.commit_within(session.durability_class, topic)
    largest = NO_LIMIT
    for recipient in recipients:
        largest = min(largest, _takes(recipient, connection.version, within))
    if not 0 < connection.frame_size <= largest:
        return False
    lends = within is not None and _lends(recipients)
    if lends and broker.store.full:
        return False
    size = message_bytes(topic, len(packet.payload))
    room = _room(client, session, qos, size, recipients)
    if room < 1:
        return False
    packets = connection.find_run(packet, largest, room)
    if qos == 2 and not session.incoming.add_run(packets.packet_ids):
        return False
    connection.take_numbered_run(packets)
    broker.traffic.messages_received += packets.count
    broker.traffic.bytes_received += packets.payload_bytes
    run = MessageRun(
        packets,
        connection.version,
        topic,
        qos,
        session.client_id,
        session.username,
        instant.wall,
        instant.monotonic,
        within,
        client.pledge(instant) if lends else None,
        size,
    )
    gathered = broker.gathered
    for recipient in recipients:
        runs.send_numbered(cast("Session", recipient.subscriber), run, recipient.qos)
    mark, pledge = broker.store.lent_mark if lends else 0, run.pledge
    if broker.gathered != gathered:  # who is away cannot acknowledge before it is on disk
        mark, pledge = broker.durability.mark(), None
    _answer(client, run, bool(recipients), mark, pledge)
    return True


def _lends(recipients: list[Recipient]) -> bool:
    """Return whether any of the recipients keeps what it is owed."""
    for recipient in recipients:
        session = cast("Session", recipient.subscriber)
        if recipient.qos and session.journal is not NO_JOURNAL:
            return True
    return False


def _takes(recipient: Recipient, version: int, within: float | None) -> int:
    """Return the bytes of the largest packet that the recipient takes, 0 if none."""
    subscriber = recipient.subscriber
    if recipient.identifiers or not isinstance(subscriber, Session):
        return 0
    return runs.largest_numbered(subscriber, version, recipient.qos, within)


def _room(
    client: Client, session: Session, qos: int, size: int, recipients: list[Recipient]
) -> int:
    """Return how many messages of so many bytes everybody has room for.

    Each receiver gets bytes of its own, which together are not to be more than a turn writes.
    """
    room = max(1, TURN_BYTES // (size * max(1, len(recipients))))
    room = min(room, client.connection.room_for_publishes)
    if qos == 2:
        room = min(room, session.incoming.room if session.journal is NO_JOURNAL else 0)
    for recipient in recipients:
        if recipient.qos:
            room = min(room, runs.room(cast("Session", recipient.subscriber), size))
    return room


def _answer(
    client: Client, run: MessageRun, received: bool, mark: int, pledge: Pledge | None
) -> None:
    connection, packets = client.connection, run.packets
    code = ReasonCode.SUCCESS if received else ReasonCode.NO_MATCHING_SUBSCRIBERS
    if run.qos == 1:
        packet = alike(PubAck, code, connection.version)
        connection.acknowledge_run(packet, packets, mark, pledge)
    else:
        packet = alike(PubRec, code, connection.version)
        connection.answer_run(packet, packets.high, packets.low, mark, pledge)
