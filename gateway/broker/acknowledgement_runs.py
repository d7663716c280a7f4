"""Runs of acknowledgements: packets that stand one behind the other, each for the next message."""

from collections.abc import Callable

from gateway.broker.client import Client
from gateway.broker.instant import Instant
from gateway.mqtt.acknowledgement_run import AcknowledgementRun, alike
from gateway.mqtt.packets import PubComp, PubRel
from gateway.mqtt.reason_codes import ReasonCode
from gateway.session import runs
from gateway.session.journal import NO_JOURNAL
from gateway.session.session import Session

_Take = Callable[[Client, Session, AcknowledgementRun, float], int]


def take_run(client: Client, instant: Instant) -> bool:
    """Handle the acknowledgements that come next, as far as they are for messages of runs.

    They say nothing but their packet identifiers, which come in the order of the messages.
    Returns False, with nothing done, where the next packet is another: it is to be handled like
    any other.
    """
    session, connection = client.session, client.connection
    if session is None or not (len(session.inflight) or session.has_incoming):
        return False
    take = _TAKE.get(connection.next_byte)
    if take is None:
        return False
    if take is not _take_puback and not (session.inflight.in_runs or session.has_incoming):
        return False
    run = connection.find_acknowledgements(connection.next_byte)
    count = 0 if run is None else take(client, session, run, instant.monotonic)
    connection.take_acknowledgements(count)
    return count > 0


def _take_puback(_client: Client, session: Session, run: AcknowledgementRun, now: float) -> int:
    """Finish QoS 1 deliveries [MQTT-4.3.2-3]."""
    return runs.finish(session, 1, run, now)


def _take_pubcomp(_client: Client, session: Session, run: AcknowledgementRun, now: float) -> int:
    """Finish QoS 2 deliveries."""
    return runs.finish(session, 2, run, now)


def _take_pubrec(client: Client, session: Session, run: AcknowledgementRun, _now: float) -> int:
    """Answer the first acknowledgements of QoS 2 deliveries [MQTT-4.3.3-4]."""
    count = runs.release(session, run)
    connection = client.connection
    packet = alike(PubRel, ReasonCode.SUCCESS, connection.version)
    connection.answer_run(packet, run.high[:count], run.low[:count])
    return count


def _take_pubrel(client: Client, session: Session, run: AcknowledgementRun, _now: float) -> int:
    """Forget the packet identifiers of QoS 2 messages of this connection [MQTT-4.3.3-11]."""
    if session.journal is not NO_JOURNAL or not session.incoming.remove_run(run.packet_ids):
        return 0
    connection = client.connection
    connection.acknowledge_run(alike(PubComp, ReasonCode.SUCCESS, connection.version), run)
    return run.count


_TAKE: dict[int, _Take] = {
    0x40: _take_puback,
    0x50: _take_pubrec,
    0x62: _take_pubrel,
    0x70: _take_pubcomp,
}
"""By the first byte of the packets."""
