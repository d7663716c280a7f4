"""Answers a CONNECT: begins or resumes the session, or refuses the client."""

import logging
from dataclasses import replace
from functools import lru_cache

from gateway.access.topics import mounted
from gateway.broker.access import access_of, grant, is_owner, origin_of
from gateway.broker.client import SHOWN, Client, user_of
from gateway.broker.connecting.admission import (
    Refusal,
    examine,
    granted_expiry,
)
from gateway.broker.instant import Instant
from gateway.broker.notices import ConnectRefusal
from gateway.broker.sessions import (
    catch_up,
    end,
    resume,
    set_expiry,
    set_username,
    set_will,
    take_over,
)
from gateway.broker.state import State
from gateway.mqtt.aliases.outbound_aliases import OutboundAliases
from gateway.mqtt.connection import Connection
from gateway.mqtt.packets import MQTT_3_1, MQTT_3_1_1, MQTT_5, ConnAck, Connect
from gateway.mqtt.properties import NO_PROPERTIES, Properties
from gateway.mqtt.reason_codes import ReasonCode
from gateway.mqtt.topics import split_shared
from gateway.session.inflight import MAXIMUM_PACKET_ID
from gateway.settings.broker import BrokerSettings

logger = logging.getLogger(__name__)

WHERE_PROPERTY = ("$where", "1")
"""Announces `$where` and its version ($where language, section 12.1)."""

VERSIONS = {MQTT_3_1: "3.1", MQTT_3_1_1: "3.1.1", MQTT_5: "5"}

ANSWERS = 64
"""Cached CONNACKs of MQTT 5, each for all clients that get the same; a listener has at most
eight."""


def admit(
    state: State,
    client: Client,
    packet: Connect,
    instant: Instant,
    authentication_data: bytes | None = None,
) -> None:
    """Accept an authenticated client, unless another rule or limit forbids it.

    `authentication_data` is the last message of its authentication method.
    """
    if packet.client_id in state.sessions:
        catch_up(state.deadlines, packet.client_id, instant)
    assigned = not packet.client_id
    if assigned:
        packet.client_id = state.new_client_id()
    prefix = access_of(client, packet).prefix if client.info.access.mount_point else ""
    if prefix and packet.will is not None:
        packet.will.topic = mounted(packet.will.topic, prefix)
    refusal = examine(state, client, packet)
    if refusal is None:
        _end_of_another_mount_point(state, client, packet, prefix, instant)
        _accept(state, client, packet, instant, authentication_data, assigned=assigned)
    else:
        refuse(state, client, packet, refusal)


def refuse(state: State, client: Client, packet: Connect, refusal: Refusal) -> None:
    """Tell the client why it is refused, and end its connection."""
    code, reason, details = refusal
    who, user = packet.client_id[:SHOWN], user_of(packet.username)
    line = "refused client %r%s at %s: %s%s (0x%02X)"
    logger.warning(line, who, user, client.peer, reason, details, code)
    state.counters.add("tidegate/clients/refused")
    state.notices.give(ConnectRefusal(packet.client_id, packet.username, client.peer, reason))
    client.send(ConnAck(reason_code=code, properties=client.explain(reason, always=True)))
    client.close()  # [MQTT-3.2.2-7]


def _accept(
    state: State,
    client: Client,
    packet: Connect,
    instant: Instant,
    authentication_data: bytes | None,
    *,
    assigned: bool,
) -> None:
    before = state.pending.changes
    take_over(state, packet.client_id, instant)
    _end_of_another_user(state, client, packet, instant)
    session, present = resume(state, packet, instant)
    set_username(state.memory, session, packet.username)
    state.shares.know(session, client)
    grant(state.router, state.admissions, session, client, packet)
    session.durability_class = state.durability_classes.of_client(
        session.client_id, client.info.durability_class
    )
    set_will(state, session, packet.will)
    set_expiry(state, session, granted_expiry(state.settings, client, packet))
    session.delivery = state.delivery_classes.of_client(
        session.client_id,
        session.username,
        client.info.delivery,
        persistent=session.persistent,
    )
    session.attach(client.connection, packet.properties.receive_maximum or MAXIMUM_PACKET_ID)
    client.session = session
    client.connection.framer.maximum_packet_size = state.packet_size(client.info)
    if session.granted.prefix:  # which the client does not send; adding 0 makes an int for each
        client.connection.framer.maximum_packet_size += len(session.granted.prefix.encode())
    _allow_aliases(state, client.connection, packet)
    client.keep_alive = _keep_alive(client, packet)
    state.clients[session.client_id] = client
    # [MQTT-3.2.2-2], [MQTT-3.2.2-3]
    properties = _properties(state, client, packet, authentication_data, assigned)
    commit = state.commit_since(before)
    if not client.connection.send(ConnAck(present, ReasonCode.SUCCESS, properties), commit):
        client.end_reason = "its Maximum Packet Size is too small for CONNACK"
        client.close()  # it is too small even to tell the client our limits
        return
    version = VERSIONS[packet.protocol_version]
    state.connection_lines.note_begin(client, session.client_id, version, instant)
    state.keep_alive.watch(client, instant)
    if session.consumes:
        state.channels.connected(session)
    session.pump(instant.monotonic)


def _end_of_another_user(state: State, client: Client, packet: Connect, instant: Instant) -> None:
    """End another user's session with the same client identifier, which the listener allows.

    Its messages are not for the new user.
    """
    session = state.sessions.get(packet.client_id)
    if session is None or is_owner(session, packet.username, origin_of(client)):
        return
    state.counters.add("tidegate/access/takeovers")
    line = "client %r%s at %s ends the session%s that has its client identifier, with %d messages"
    owner, waiting = user_of(session.username), len(session.queue) + len(session.inflight)
    who, user = packet.client_id[:SHOWN], user_of(packet.username)
    logger.warning(line, who, user, client.peer, owner, waiting)
    end(state, session, instant)


def _end_of_another_mount_point(
    state: State, client: Client, packet: Connect, prefix: str, instant: Instant
) -> None:
    """End the client's session if it is one of another mount point, or has subscriptions of one.

    They would bring nothing, and the client would not subscribe again.
    """
    session, router = state.sessions.get(packet.client_id), state.router
    if session is None or not (prefix or session.access.prefix):
        return
    numbers = router.numbers(session)
    filters = (split_shared(router.subscription(each).topic_filter)[1] for each in numbers)
    if session.access.prefix == prefix and all(each.startswith(prefix) for each in filters):
        return
    line = "client %r at %s ends its session, which is one of another mount point"
    logger.warning(line, packet.client_id[:SHOWN], client.peer)
    take_over(state, packet.client_id, instant)
    end(state, session, instant)


def _allow_aliases(state: State, connection: Connection, packet: Connect) -> None:
    """Use topic aliases towards the client, within its limits.

    [MQTT-3.1.2-26] [MQTT-3.3.2-11]: none above its Topic Alias Maximum, [MQTT-3.1.2-27] none at all
    without one.
    """
    theirs = packet.properties.topic_alias_maximum or 0
    maximum = min(theirs, state.settings.topic_alias_maximum_out)
    if maximum:
        connection.outbound_aliases = OutboundAliases(maximum, state.alias_budget)


def _keep_alive(client: Client, packet: Connect) -> int:
    """Return the client's Keep Alive, or the listener's if it is less and may be announced."""
    limit = client.info.maximum_keep_alive
    if limit is None or packet.protocol_version != MQTT_5 or 0 < packet.keep_alive <= limit:
        return packet.keep_alive
    return limit


def _properties(
    state: State,
    client: Client,
    packet: Connect,
    authentication_data: bytes | None,
    assigned: bool,
) -> Properties:
    if client.connection.version != MQTT_5:
        return NO_PROPERTIES
    settings = state.settings
    imposed = client.keep_alive != packet.keep_alive
    expiry = granted_expiry(state.settings, client, packet)
    lowered = expiry != (packet.properties.session_expiry_interval or 0)
    properties = _same_for_many(
        expiry if lowered else None,
        client.keep_alive if imposed else None,
        settings.receive_maximum,
        state.packet_size(client.info),
        _response_information(settings, packet),
        settings.topic_alias_maximum or None,
    )
    method = packet.properties.authentication_method
    if not assigned and method is None:
        return properties
    return replace(
        properties,
        assigned_client_identifier=packet.client_id if assigned else None,  # [MQTT-3.2.2-16]
        authentication_method=method,  # [MQTT-4.12.0-5]
        authentication_data=authentication_data,
    )


@lru_cache(maxsize=ANSWERS)
def _same_for_many(
    expiry: int | None,
    keep_alive: int | None,
    receive_maximum: int,
    maximum_packet_size: int,
    response_information: str | None,
    topic_alias_maximum: int | None,
) -> Properties:
    return Properties(
        session_expiry_interval=expiry,  # section 3.2.2.3.2
        server_keep_alive=keep_alive,  # [MQTT-3.2.2-21]
        receive_maximum=receive_maximum,
        maximum_packet_size=maximum_packet_size,
        response_information=response_information,
        topic_alias_maximum=topic_alias_maximum,
        user_properties=(WHERE_PROPERTY,),
    )


def _response_information(settings: BrokerSettings, packet: Connect) -> str | None:
    """Return the prefix of response topics, for clients that request it [MQTT-3.1.2-28]."""
    requested = packet.properties.request_response_information == 1
    return settings.response_information if requested else None
