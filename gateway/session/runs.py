"""How packets that stand one behind the other leave a session as they came in, or wait in it."""

from typing import cast

from gateway.mqtt.acknowledgement_run import AcknowledgementRun
from gateway.mqtt.connection import Connection
from gateway.mqtt.packets import MQTT_5
from gateway.session.delivery_queue import LARGEST_OF_RUN, Delivery
from gateway.session.journal import NO_JOURNAL
from gateway.session.message_run import MessageRun
from gateway.session.session import Session


def largest(session: Session, version: int) -> int:
    """Return how large packets may be that go out in the bytes in which they came.

    0 if they cannot. `version` is the protocol version of those bytes.
    """
    connection = session.connection
    if (
        connection is None
        or (connection.version == MQTT_5) != (version == MQTT_5)
        or connection.outbound_aliases is not None
        or not session.ready(0)
    ):
        return 0
    return connection.maximum_packet_size


def largest_numbered(session: Session, version: int, qos: int, within: float | None) -> int:
    """Return the same for packets of QoS 1 or 2 that get nothing but another identifier.

    A client that is away gets those of QoS 1 later.
    `within` is their durability class (`Message.commit_within`).
    """
    journal = session.journal
    if session.connection is None:
        return LARGEST_OF_RUN if qos == 1 and session.persistent else 0
    if journal is not NO_JOURNAL and not journal.lends(qos, within):
        return 0
    return largest(session, version)


def send(session: Session, data: bytes | bytearray, count: int, payload_bytes: int) -> None:
    """Send `count` packets that `largest` allowed, with so many bytes of payload."""
    cast("Connection", session.connection).send_run(data, count)
    session.traffic.messages_sent += count
    session.traffic.bytes_sent += payload_bytes


def room(session: Session, size: int) -> int:
    """Return how many messages of so many bytes `send_numbered` may send, or keep."""
    if session.connection is None:
        return session.queue.room_for_run
    return session.inflight.room_for_run(size)


def send_numbered(session: Session, run: MessageRun) -> None:
    """Send a run that `largest_numbered` and `room` allowed, or queue it."""
    if session.connection is None:
        deliveries = [Delivery(message, run.qos) for message in run.messages]
        session.journal.owe_run(deliveries)
        session.queue.restore_all(deliveries)
        return
    sent = session.inflight.add_run(run)
    if run.pledge is not None:
        session.journal.lend_run(sent, run.pledge)
    packets = run.packets
    send(session, packets.numbered(sent.first), packets.count, packets.payload_bytes)


def finish(session: Session, qos: int, acknowledgements: AcknowledgementRun, now: float) -> int:
    """Forget what PUBACK or PUBCOMP packets finish, as far as they come in the order of runs.

    Returns how many of them that are.
    """
    inflight = session.inflight
    start = 0
    while start < acknowledgements.count:
        sent = inflight.first_run(qos)
        count = 0 if sent is None else sent.acknowledged(acknowledgements, start)
        if sent is None or not count:
            break
        inflight.finish_run(sent, count)
        if sent.done == sent.count:
            session.journal.done_run(sent)
        start += count
    if start:
        session.pump(now)
    return start


def release(session: Session, acknowledgements: AcknowledgementRun) -> int:
    """Note PUBREC packets, as far as they come in the order of runs; return how many."""
    start = 0
    while start < acknowledgements.count:
        sent = session.inflight.first_unreleased()
        count = 0 if sent is None else sent.received(acknowledgements, start)
        if sent is None or not count:
            break
        sent.released += count
        start += count
    return start
