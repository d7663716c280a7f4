"""What happens to a client's acknowledgements (MQTT 5, sections 4.3 and 4.4)."""

from collections.abc import Sequence
from typing import cast

from gateway.broker.client import Client
from gateway.broker.instant import Instant
from gateway.broker.state import State
from gateway.mqtt.acknowledgement_batch import alike
from gateway.mqtt.errors import ProtocolError
from gateway.mqtt.packets import MQTT_3_1_1, PubAck, PubComp, PubRec, PubRel
from gateway.mqtt.reason_codes import FAILURE, ReasonCode
from gateway.session.session import Session

BY_THEMSELVES = 4
"""Acknowledgements that are looked at one by one which count as one dear message."""

_PUBREL = alike(PubRel, ReasonCode.SUCCESS, MQTT_3_1_1)  # the same in every protocol version


def handle_puback(_state: State, client: Client, session: Session, instant: Instant) -> None:
    """Finish QoS 1 deliveries [MQTT-4.3.2-3]; whatever their codes, they are not resent.

    A message of a channel that is acknowledged with an error goes to another consumer.
    """
    identifiers = client.connection.acknowledged()
    if not identifiers:
        packet = _one(client)
        identifiers = (packet.packet_id,)
        if packet.reason_code >= FAILURE:
            _give_back(session, packet.packet_id)
    index, end = 0, len(identifiers)
    while index < end:
        span = session.inflight.find(identifiers[index])
        if span is None:
            index += 1
        elif span.qos == 1:
            index += session.finish(identifiers, index)
        else:
            raise ProtocolError(f"PUBACK for the QoS 2 message {identifiers[index]}")
    session.pump(instant.monotonic)


def _give_back(session: Session, packet_id: int) -> None:
    """Return a message to its channel, if it is from one: this consumer refuses it."""
    span = session.inflight.find(packet_id)
    if span is not None and span.channel is not None:
        session.inflight.take((packet_id,), 0)
        span.channel.given_back(span, span.first + packet_id - span.packet_id)


def handle_pubrec(state: State, client: Client, session: Session, instant: Instant) -> None:
    """Answer the first acknowledgements of QoS 2 deliveries [MQTT-4.3.3-4], [MQTT-4.3.3-5]."""
    connection = client.connection
    identifiers = connection.acknowledged()
    if not identifiers:
        packet = _one(client)
        if packet.reason_code >= FAILURE:
            _refuse(session, packet.packet_id, instant)
            return
        identifiers = (packet.packet_id,)
    state.traffic.dear += len(identifiers) // BY_THEMSELVES
    begin, commit = 0, 0
    for index, packet_id in enumerate(identifiers):
        span = session.inflight.find(packet_id)
        if span is not None and span.qos == 1:
            raise ProtocolError(f"PUBREC for the QoS 1 message {packet_id}")
        before, commit = commit, 0 if span is None else session.release(packet_id, span)
        if span is None or before != commit:
            _release(client, identifiers[begin:index], before)
            begin = index
        if span is None:
            client.send(PubRel(packet_id, ReasonCode.PACKET_IDENTIFIER_NOT_FOUND))
            begin = index + 1
    _release(client, identifiers[begin:], commit)


def _release(client: Client, identifiers: Sequence[int], commit: int) -> None:
    """Send a PUBREL for each packet identifier once `commit` is on disk."""
    if identifiers:
        client.connection.answer(_PUBREL, identifiers, commit)


def _refuse(session: Session, packet_id: int, instant: Instant) -> None:
    """End the delivery of a QoS 2 message that the client refuses, with nothing to answer."""
    span = session.inflight.find(packet_id)
    if span is None:
        return
    if span.qos == 1:
        raise ProtocolError(f"PUBREC for the QoS 1 message {packet_id}")
    session.finish((packet_id,), 0)
    session.pump(instant.monotonic)


def handle_pubcomp(_state: State, client: Client, session: Session, instant: Instant) -> None:
    """Finish QoS 2 deliveries."""
    identifiers = client.connection.acknowledged()
    if not identifiers:
        identifiers = (_one(client).packet_id,)
    inflight, count = session.inflight, 0
    for packet_id in identifiers:
        if packet_id not in inflight.released and inflight.find(packet_id) is not None:
            break
        count += 1
    index, finished = 0, identifiers[:count]
    while index < count:
        index += session.finish(finished, index) or 1
    if count < len(identifiers):
        raise ProtocolError(f"PUBCOMP for {identifiers[count]} before its PUBREC")
    session.pump(instant.monotonic)


def _one(client: Client) -> PubAck | PubRec | PubComp:
    """Return an acknowledgement that says more than its packet identifier."""
    return cast("PubAck | PubRec | PubComp", client.connection.packet())
