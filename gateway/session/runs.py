"""How packets that stand one behind the other leave a session as they came in, or wait in it."""

from gateway.mqtt.acknowledgement_run import AcknowledgementRun
from gateway.mqtt.connection import NO_LIMIT
from gateway.mqtt.packets import MQTT_5
from gateway.mqtt.publish_form import GROWTH
from gateway.session.delivery import Delivery
from gateway.session.journal import NO_JOURNAL
from gateway.session.message_run import MessageRun
from gateway.session.queue_bounds import LARGEST_OF_RUN
from gateway.session.session import Session
from gateway.session.waiting_run import FEW, MOST


def largest(session: Session, version: int) -> int:
    """Return how large packets may be that are passed on to the session.

    0 if they cannot be. `version` is the protocol version of those packets. A session that more
    waits for (`Session.on_room`) gets one message after the other.
    """
    connection = session.clear_connection()
    if connection is None or connection.outbound_aliases is not None or session.on_room is not None:
        return 0
    if (connection.version == MQTT_5) == (version == MQTT_5):
        return connection.maximum_packet_size
    return connection.maximum_packet_size - GROWTH


def largest_numbered(session: Session, version: int, qos: int, within: float | None) -> int:
    """Return the same for packets of QoS 1 or 2, which are to be sent with `qos`.

    A client that is away gets those of QoS 1 later.
    `within` is their durability class (`Message.commit_within`).
    """
    journal = session.journal
    if session.on_room is not None:
        return 0
    if session.connection is None:
        if not qos:
            return NO_LIMIT  # it will not wait
        return LARGEST_OF_RUN if qos == 1 and session.persistent else 0
    if qos and journal is not NO_JOURNAL and not journal.lends(qos, within):
        return 0
    return largest(session, version)


def room(session: Session, size: int) -> int:
    """Return how many messages of so many bytes `send_numbered` may send, or keep."""
    if session.connection is None:
        return min(session.queue.room_for_run, MOST)
    return session.inflight.room_for_run(size)


def send_numbered(session: Session, run: MessageRun, qos: int) -> None:
    """Send a run with `qos` that `largest_numbered` and `room` allowed, or queue it."""
    connection = session.connection
    if connection is None:
        if qos:
            _keep(session, run, qos)
        return
    packets = run.packets
    data: bytes | bytearray
    if qos:
        sent = session.inflight.add_run(run, qos)
        if run.pledge is not None:
            session.journal.lend_run(sent, run.pledge)
        data = run.numbered(sent.first, qos, connection.version)
    else:
        data = run.plain(connection.version)
    session.send_run(data, packets.count, packets.payload_bytes, run.at_once)


def _keep(session: Session, run: MessageRun, qos: int) -> None:
    """Queue a run for a client that is away, as one if it is to be written."""
    waiting = session.journal.owe_run(run) if run.packets.count >= FEW else None
    if waiting is not None:
        session.queue.restore(waiting)
        return
    deliveries = [Delivery(message, qos) for message in run.messages]
    for delivery in deliveries:
        session.journal.owe(delivery)
    session.queue.restore_all(deliveries)


def finish(session: Session, qos: int, acknowledgements: AcknowledgementRun, now: float) -> int:
    """Forget what PUBACK or PUBCOMP packets finish, as far as they come in the order of runs.

    Between the runs may be QoS 1 messages that were sent by themselves, in any order. Returns how
    many packets that are.
    """
    start = 0
    single = qos == 1 and session.inflight.alone > 0
    while start < acknowledgements.count:
        count = _finish_run(session, qos, acknowledgements, start)
        if not count and single:
            count = _finish_alone(session, acknowledgements, start)
        if not count and single:
            finished = session.inflight.finish(acknowledgements.packet_ids, start)
            session.journal.done_all(finished)
            count = len(finished)
        if not count:
            break
        start += count
    if start:
        session.pump(now)
    return start


def finish_alone(session: Session, packet_id: int, at_once: bool) -> bool:
    """Forget a message that came alone; return False if that identifier is of another, or none.

    If its publisher's PUBACK waited for this alone, it leaves `at_once`, or at the turn's end.
    """
    message = session.inflight.finish_alone(packet_id)
    if message is None:
        return False
    publisher = message.publisher
    if publisher is not None:
        session.journal.done_alone(message)
        if at_once:
            session.traffic.network_sent += publisher.leave_at_once()
        else:
            publisher.touch()
    return True


def _finish_alone(session: Session, acknowledgements: AcknowledgementRun, start: int) -> int:
    """Forget messages that came alone, from that of `start` on; return how many."""
    packet_ids = acknowledgements.packet_ids
    end = start
    while end < acknowledgements.count and finish_alone(session, packet_ids[end], at_once=False):
        end += 1
    return end - start


def _finish_run(
    session: Session, qos: int, acknowledgements: AcknowledgementRun, start: int
) -> int:
    """Forget what acknowledgements from `start` on finish of the run that is next."""
    inflight = session.inflight
    sent = inflight.first_run(qos)
    count = 0 if sent is None else sent.acknowledged(acknowledgements, start)
    if sent is None or not count:
        return 0
    inflight.finish_run(sent, count)
    if sent.row is not None:
        sent.row.done(sent.place + sent.done - count, count)
    elif sent.done == sent.count and session.journal is not NO_JOURNAL:
        session.journal.done_run(sent)
    return count


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
