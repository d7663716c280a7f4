"""What happens to a PUBLISH from a client (MQTT 5, sections 3.3.4 and 4.3)."""

from typing import TYPE_CHECKING

from gateway.broker import fanout
from gateway.broker.access import may_publish
from gateway.broker.application_message import is_what_it_says, make_message
from gateway.broker.client import Client
from gateway.broker.instant import Instant
from gateway.broker.stage import session_of
from gateway.mqtt.acknowledgement_run import alike
from gateway.mqtt.errors import ProtocolError
from gateway.mqtt.output import Pledge
from gateway.mqtt.packets import MQTT_5, PubAck, PubComp, Publish, PubRec, PubRel
from gateway.mqtt.reason_codes import FAILURE, ReasonCode
from gateway.session.session import Session

if TYPE_CHECKING:
    from gateway.broker.broker import Broker

Promise = tuple[int, Pledge | None]
"""The mark and the pledge that an answer waits for."""

NOTHING: Promise = (0, None)

RETRY = (ReasonCode.QUOTA_EXCEEDED, ReasonCode.MESSAGE_RATE_TOO_HIGH)
"""Refusals that may be over when the message comes again."""


def handle_publish(broker: "Broker", client: Client, packet: Publish, instant: Instant) -> None:
    """Route a message and queue the answer that its QoS asks for."""
    session = session_of(client)
    broker.traffic.messages_received += 1
    broker.traffic.bytes_received += len(packet.payload)
    if packet.properties.subscription_identifiers:  # [MQTT-3.3.4-6]
        raise ProtocolError("PUBLISH from a client with a subscription identifier")
    if packet.qos == 0:
        _publish(broker, client, session, packet, instant)
    elif packet.qos == 2 and packet.packet_id in session.incoming:
        _repeat(broker, client, session, packet.packet_id)
    else:
        client.connection.count_publish()
        promise = NOTHING
        if packet.qos == 2 and session.incoming.full:
            broker.counters.add("tidegate/refused/incoming")
            code = ReasonCode.QUOTA_EXCEEDED
        else:
            code, promise = _publish(broker, client, session, packet, instant)
        _answer(broker, client, session, packet, code, promise)


def _repeat(broker: "Broker", client: Client, session: Session, packet_id: int) -> None:
    """Answer a QoS 2 message that was taken before, and do not deliver it [MQTT-4.3.3-10].

    The first time may have been on another connection: what it gathered may not be on disk yet,
    and this connection has not counted it.
    """
    if session.incoming.add(packet_id):
        client.connection.count_publish()
    session.journal.take(packet_id)
    client.send(PubRec(packet_id), broker.durability.mark())


def _answer(
    broker: "Broker",
    client: Client,
    session: Session,
    packet: Publish,
    code: ReasonCode,
    promise: Promise,
) -> None:
    if code >= FAILURE and client.connection.version != MQTT_5:
        if code in RETRY:
            # MQTT 3.1.1 has no negative PUBACK; silence and a new connection make the client retry
            client.close()
            return
        code = ReasonCode.SUCCESS  # what will never be taken is acknowledged, or it comes for ever
    if packet.qos == 1:
        connection = client.connection
        like = alike(PubAck, code, connection.version)
        connection.acknowledge_like(like, packet.packet_id, *promise)  # [MQTT-4.3.2-4]
    elif code >= FAILURE:  # ends the exchange (section 4.3.3)
        client.connection.acknowledge(PubRec(packet.packet_id, code), *promise)
    else:
        session.incoming.add(packet.packet_id)
        gathered = broker.gathered
        session.journal.take(packet.packet_id)
        if broker.gathered != gathered:
            promise = broker.durability.mark(), None
        client.send(PubRec(packet.packet_id, code), *promise)  # [MQTT-4.3.3-8]


def handle_pubrel(broker: "Broker", client: Client, packet: PubRel, _instant: Instant) -> None:
    """Forget the packet identifier of a QoS 2 message [MQTT-4.3.3-11], [MQTT-4.3.3-12].

    PUBCOMP leaves when that is on disk: the client may use the identifier again from then on.
    """
    session = session_of(client)
    counted = session.incoming.remove(packet.packet_id)
    gathered = broker.gathered
    session.journal.let_go(packet.packet_id)
    mark = broker.mark_since(gathered)
    if counted is None:  # forgotten, but perhaps not yet on disk
        client.send(PubComp(packet.packet_id, ReasonCode.PACKET_IDENTIFIER_NOT_FOUND), mark)
    elif counted:
        client.connection.acknowledge(PubComp(packet.packet_id), mark)
    else:  # of an earlier connection: this one has not counted it
        client.send(PubComp(packet.packet_id), mark)


def _publish(
    broker: "Broker", client: Client, session: Session, packet: Publish, instant: Instant
) -> tuple[ReasonCode, Promise]:
    """Return the answer's code and what it waits for.

    The answer leaves after the rows that the message made (ARCHITECTURE.md, "The turn"), or when
    none is needed any more, unless its durability class promises nothing.
    """
    code = _examine(broker, packet)
    if code is not ReasonCode.SUCCESS:
        return code, NOTHING
    message = make_message(broker.durability_classes, session, packet, instant)
    if not packet.qos:
        return fanout.publish(broker, message, instant), NOTHING
    gathered, lent = broker.gathered, broker.store.lent
    message.pledge = pledge = client.pledge(instant)
    code = fanout.publish(broker, message, instant)
    message.pledge = None
    if message.commit_within is None:
        return code, NOTHING
    if broker.gathered != gathered:
        return code, (broker.durability.mark(), None)
    if broker.store.lent != lent:
        return code, (broker.store.lent_mark, pledge)
    return code, NOTHING


def _examine(broker: "Broker", packet: Publish) -> ReasonCode:
    """Return why the message is not taken, SUCCESS if it is.

    Raises ProtocolError for a QoS 0 message that the client has to be told of all the same.
    """
    fault = broker.topic_limits.fault(packet.topic)
    if fault:
        broker.counters.add("tidegate/refused/topic_names")
        return _not_taken(packet, ReasonCode.TOPIC_NAME_INVALID, f"topic name {fault}")
    if not may_publish(packet.topic):
        broker.counters.add("tidegate/clients/not_authorized")
        return ReasonCode.NOT_AUTHORIZED
    if broker.settings.check_payload_format and not is_what_it_says(packet):
        broker.counters.add("tidegate/refused/payload_formats")
        return _not_taken(packet, ReasonCode.PAYLOAD_FORMAT_INVALID, "payload is not UTF-8")
    return ReasonCode.SUCCESS


def _not_taken(packet: Publish, code: ReasonCode, reason: str) -> ReasonCode:
    """Return the code for PUBACK or PUBREC; what has neither is told by DISCONNECT."""
    if packet.qos == 0:
        raise ProtocolError(reason, code)
    return code
