"""Runs of acknowledgements: packets that stand one behind the other, each for the next message."""

from typing import Final

from gateway.broker.client import Client
from gateway.broker.instant import Instant
from gateway.mqtt.acknowledgement_run import SIZE, AcknowledgementRun, alike
from gateway.mqtt.packets import MQTT_3_1_1, PubAck, PubComp, PubRel
from gateway.mqtt.reason_codes import ReasonCode
from gateway.mqtt.received_runs import (
    acknowledgements_alone,
    find_acknowledgements,
    next_byte,
    take_acknowledgements,
)
from gateway.session import runs
from gateway.session.journal import NO_JOURNAL
from gateway.session.session import Session
from gateway.session.traffic import Traffic

_PUBACK, _PUBREC, _PUBREL, _PUBCOMP = 0x40, 0x50, 0x62, 0x70
"""The first bytes of the packets."""

_FINISH: Final = alike(PubAck, ReasonCode.SUCCESS, MQTT_3_1_1)[:2]
"""What stands before the packet identifier of a PUBACK without a reason code."""

_RELEASE = alike(PubRel, ReasonCode.SUCCESS, MQTT_3_1_1)
_COMPLETE = alike(PubComp, ReasonCode.SUCCESS, MQTT_3_1_1)
"""Answers to PUBREC and PUBREL, the same in every protocol version."""


def finish_alone(client: Client, data: bytes, traffic: Traffic, at_once: bool = False) -> bool:
    """Finish the delivery of a message that came alone if `data` is its PUBACK [MQTT-4.3.2-3].

    That says nothing but its packet identifier. What waits for it is its publisher's PUBACK, if
    anything does, which leaves `at_once` unless something is to leave before it. `data` is not
    received yet. Returns False, with nothing done, if it is anything else.
    """
    session, connection = client.session, client.connection
    if (
        len(data) != SIZE
        or not data.startswith(_FINISH)
        or session is None
        or session.queue
        or session.on_room is not None
        or not connection.framer.idle()
        or not runs.finish_alone(session, data[2] << 8 | data[3], at_once)
    ):
        return False
    connection.packets_received += 1
    traffic.network_received += SIZE
    return True


def take_alone(client: Client, data: bytes, instant: Instant) -> int:
    """Do what `take_run` does with what was just read, if that is acknowledgements of one type.

    What is not busy sends so; it need not be looked for packets then. Returns how many of its
    bytes are done with; the others, all where it is anything else, are not received yet.
    """
    session, connection = client.session, client.connection
    if data[0] < _PUBACK or session is None or not _expects(session, data[0]):
        return 0
    run = acknowledgements_alone(connection, data)
    if run is None:
        return 0
    count = _take(client, session, run, data[0], instant.monotonic)
    connection.packets_received += count
    return count * SIZE


def take_run(client: Client, instant: Instant) -> bool:
    """Handle the acknowledgements that come next, as far as they are for messages of runs.

    They say nothing but their packet identifiers, which come in the order of the messages.
    Returns False, with nothing done, where the next packet is another: it is to be handled like
    any other.
    """
    session, connection = client.session, client.connection
    first_byte = next_byte(connection)
    if first_byte < _PUBACK or session is None or not _expects(session, first_byte):
        return False
    run = find_acknowledgements(connection, first_byte)
    count = 0 if run is None else _take(client, session, run, first_byte, instant.monotonic)
    take_acknowledgements(connection, count)
    return count > 0


def _expects(session: Session, first_byte: int) -> bool:
    """Return whether packets with this first byte may be for messages that were handled in runs."""
    if first_byte == _PUBACK:
        return len(session.inflight) > 0
    if first_byte in (_PUBREC, _PUBCOMP):
        return session.inflight.in_runs > 0
    return first_byte == _PUBREL and session.has_incoming


def _take(
    client: Client, session: Session, run: AcknowledgementRun, first_byte: int, now: float
) -> int:
    """Handle as many as come in the order of their messages, and return how many that are."""
    if first_byte == _PUBACK:  # [MQTT-4.3.2-3]
        return runs.finish(session, 1, run, now)
    if first_byte == _PUBCOMP:
        return runs.finish(session, 2, run, now)
    if first_byte == _PUBREC:
        return _release(client, session, run)
    return _complete(client, session, run)


def _release(client: Client, session: Session, run: AcknowledgementRun) -> int:
    """Answer the first acknowledgements of QoS 2 deliveries [MQTT-4.3.3-4]."""
    count = runs.release(session, run)
    if count:
        client.connection.answer_run(_RELEASE, run.high[:count], run.low[:count])
    return count


def _complete(client: Client, session: Session, run: AcknowledgementRun) -> int:
    """Forget the packet identifiers of QoS 2 messages of this connection [MQTT-4.3.3-11]."""
    if session.journal is not NO_JOURNAL or not session.incoming.remove_run(run.packet_ids):
        return 0
    client.connection.acknowledge_run(_COMPLETE, run)
    return run.count
