"""Runs at QoS 1 and 2: they get other packet identifiers, and are answered."""

from typing import TYPE_CHECKING, cast

from gateway.broker.client import Client
from gateway.broker.instant import Instant
from gateway.broker.lone_numbered_way import LoneNumberedWay
from gateway.mqtt.acknowledgement_run import alike, write_run
from gateway.mqtt.connection import NO_LIMIT, Connection
from gateway.mqtt.fields import write_string
from gateway.mqtt.message_size import MESSAGE_OVERHEAD
from gateway.mqtt.output import Pledge
from gateway.mqtt.packets import MQTT_3_1_1, MQTT_5, PubAck, Publish, PubRec
from gateway.mqtt.publish import QOS_SHIFT, publish_first_byte
from gateway.mqtt.publish_run import PublishRun, publish_alone
from gateway.mqtt.reason_codes import ReasonCode
from gateway.mqtt.received_runs import (
    begin_run,
    begins_numbered,
    bytes_alone,
    find_run,
    frame_size,
    put_back,
    take_numbered_run,
)
from gateway.routing.recipient import Recipient
from gateway.session import runs
from gateway.session.inflight_message import Origin
from gateway.session.journal import NO_JOURNAL
from gateway.session.message_run import MessageRun
from gateway.session.session import Session
from gateway.session.traffic import TURN_BYTES, Traffic

if TYPE_CHECKING:
    from gateway.broker.broker import Broker

_TAKEN = alike(PubAck, ReasonCode.SUCCESS, MQTT_3_1_1)
_RECEIVED = alike(PubRec, ReasonCode.SUCCESS, MQTT_3_1_1)
"""Answers to messages that somebody gets, the same in every protocol version."""


def pass_on(
    broker: "Broker",
    client: Client,
    session: Session,
    packet: Publish,
    recipients: tuple[Recipient, ...],
    instant: Instant,
) -> bool:
    """Pass a message of QoS 1 or 2, and those behind it, on to all of its `recipients`.

    That is for as many as everyone has room for at once. Returns False, with nothing done, as
    `runs.pass_on` does, which has looked at the message itself.
    """
    topic = write_string(packet.topic)
    size = frame_size(client.connection)
    if not size or not _pass_on(
        broker, client, session, packet.qos, packet.topic, topic, size, recipients, instant
    ):
        return False
    first_byte = publish_first_byte(packet.qos, retain=False, dup=False)
    client.last_numbered = first_byte, packet.topic, topic
    return True


def pass_on_again(
    broker: "Broker", client: Client, first_byte: int, name: str, topic: bytes, instant: Instant
) -> bool:
    """Do the same with the next packet if it begins as the one that was passed on last.

    `topic` is its `name` in bytes: where the same bytes stand again, flags and topic name are as
    valid as they were.
    """
    session, connection = client.session, client.connection
    size = begins_numbered(connection, first_byte, topic)
    if not size or session is None:
        return False
    qos = first_byte >> QOS_SHIFT & 3
    recipients = broker.router.plain_recipients(name, qos)
    if recipients is None:
        return False
    begin_run(connection, size)
    if _pass_on(broker, client, session, qos, name, topic, size, recipients, instant):
        return True
    put_back(connection)
    return False


def pass_on_alone(
    broker: "Broker",
    client: Client,
    data: bytes,
    last: tuple[int, str, bytes],
    instant: Instant,
    at_once: bool,
) -> bool:
    """Do the same with what was just read, if that is one such packet and nothing else.

    `last` has what `pass_on_again` is told. What is not busy sends so; it need not be looked for
    packets then. `data` is not received yet. It leaves `at_once`, and so does its answer, where
    nothing is to leave before them.
    """
    first_byte, name, topic = last
    session, connection = client.session, client.connection
    rest = bytes_alone(connection, data, topic, first_byte)
    if rest < 0 or session is None:
        return False
    packets = publish_alone(data, rest, len(topic), connection.version == MQTT_5)
    if packets is None:
        return False
    qos = first_byte >> QOS_SHIFT & 3
    recipients = broker.router.plain_recipients(name, qos)
    if recipients is None:
        return False
    if not _pass_on(
        broker, client, session, qos, name, topic, len(data), recipients, instant, packets, at_once
    ):
        return False
    connection.packets_received += 1
    connection.count_publish()
    if qos == 1 and len(recipients) == 1 and (at_once or client.numbered_way is None):
        client.numbered_way = _way(broker, client, session, name, topic, recipients[0])
    return True


def _way(
    broker: "Broker", client: Client, session: Session, name: str, topic: bytes, to: Recipient
) -> LoneNumberedWay | None:
    """Return the way of messages like one that was passed `to` a session; None if it has none."""
    receiver = cast("Session", to.subscriber)
    connection, publisher = receiver.connection, client.connection
    if connection is None or (connection.version == MQTT_5) != (publisher.version == MQTT_5):
        return None
    within = broker.durability_classes.commit_within(session.durability_class, name)
    origin = Origin(name, session.client_id, session.username, within)
    kept = to.qos and receiver.journal is not NO_JOURNAL and within is not None
    return LoneNumberedWay(
        broker.router.routes,
        publisher,
        receiver,
        topic,
        origin,
        numbered=to.qos > 0,
        store=broker.store if kept else None,
    )


def _pass_on(
    broker: "Broker",
    client: Client,
    session: Session,
    qos: int,
    name: str,
    topic: bytes,
    packet_size: int,
    recipients: tuple[Recipient, ...],
    instant: Instant,
    alone: PublishRun | None = None,
    at_once: bool = False,
) -> bool:
    """Pass on the packet that was taken last, and those behind it, or the one that came `alone`."""
    # In one piece: each message that comes alone passes here, and what is found out of its
    # receivers would have to be handed on in a tuple.
    connection = client.connection
    within = broker.durability_classes.commit_within(session.durability_class, name)
    size = MESSAGE_OVERHEAD + packet_size
    room = _room(client, session, qos, size, len(recipients))
    largest = NO_LIMIT
    kept = away = False
    receivers: list[tuple[Session, int]] = []
    for recipient in recipients:
        receiver = recipient.subscriber
        if recipient.identifiers or not isinstance(receiver, Session):
            return False
        largest = min(
            largest, runs.largest_numbered(receiver, connection.version, recipient.qos, within)
        )
        if packet_size > largest:
            return False
        receivers.append((receiver, recipient.qos))
        if recipient.qos:
            room = min(room, runs.room(receiver, size))
            if receiver.journal is not NO_JOURNAL:
                kept = within is not None
                away = away or receiver.connection is None
    if room < 1 or (kept and broker.store.full):
        return False
    packets = find_run(connection, topic, largest, room) if alone is None else alone
    if packets is None or (qos == 2 and not session.incoming.add_run(packets.packet_ids)):
        return False
    if alone is None:
        take_numbered_run(connection, packets)
    run = MessageRun(
        packets,
        connection.version,
        name,
        qos,
        session.client_id,
        session.username,
        instant.wall,
        instant.monotonic,
        within,
        client.pledge(instant) if kept else None,
        size,
    )
    run.at_once = at_once
    _send(broker, client, run, receivers, kept, away)
    return True


def _send(
    broker: "Broker",
    client: Client,
    run: MessageRun,
    receivers: list[tuple[Session, int]],
    kept: bool,
    away: bool,
) -> None:
    """Send a run to the receivers, with the QoS of each, and answer who published it."""
    broker.traffic.messages_received += run.packets.count
    broker.traffic.bytes_received += run.packets.payload_bytes
    gathered = broker.gathered if away else 0
    for receiver, qos in receivers:
        runs.send_numbered(receiver, run, qos)
    if away and broker.gathered != gathered:  # who is away cannot acknowledge first
        _answer(broker, client, run, len(receivers), broker.durability.mark(), None)
    else:
        _answer(
            broker, client, run, len(receivers), broker.store.lent_mark if kept else 0, run.pledge
        )


def _room(client: Client, session: Session, qos: int, size: int, receivers: int) -> int:
    """Return how many messages of so many bytes there is room for on the side of their client.

    Each receiver gets bytes of its own, which together are not to be more than a turn writes.
    """
    room = min(
        max(1, TURN_BYTES // (size * max(1, receivers))), client.connection.room_for_publishes
    )
    if qos == 2:
        room = min(room, session.incoming.room if session.journal is NO_JOURNAL else 0)
    return room


def _answer(
    broker: "Broker",
    client: Client,
    run: MessageRun,
    receivers: int,
    mark: int,
    pledge: Pledge | None,
) -> None:
    connection, packets = client.connection, run.packets
    if receivers:
        packet = _TAKEN if run.qos == 1 else _RECEIVED
    else:
        kind = PubAck if run.qos == 1 else PubRec
        packet = alike(kind, ReasonCode.NO_MATCHING_SUBSCRIBERS, connection.version)
    if run.at_once and not mark and _answer_at_once(connection, broker.traffic, run, packet):
        return
    if run.qos == 1:
        connection.acknowledge_run(packet, packets, mark, pledge)
    else:
        connection.answer_run(packet, packets.high, packets.low, mark, pledge)


def _answer_at_once(
    connection: Connection, traffic: Traffic, run: MessageRun, packet: bytes
) -> bool:
    """Answer a message that came alone before the turn ends, if nothing is to leave before that."""
    data = write_run(packet, run.packets.high, run.packets.low)
    if not connection.output.leave_at_once(data):
        return False
    traffic.network_sent += len(data)
    connection.packets_sent += 1
    if run.qos == 1:
        connection.output.note_acknowledgements(1)
    return True
