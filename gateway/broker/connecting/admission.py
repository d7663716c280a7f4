"""Decides whether a readable CONNECT is accepted."""

from typing import NamedTuple

from gateway.access.rule import WRITE
from gateway.access.topics import NOWHERE, is_state_of
from gateway.broker.access import access_of, is_owner, origin_of
from gateway.broker.client import SHOWN, Client, user_of
from gateway.broker.own_names import is_own_name
from gateway.broker.publishing.publish import is_valid_payload_format
from gateway.broker.shares import holder_of
from gateway.broker.state import State
from gateway.mqtt.packets import MQTT_3_1_1, MQTT_5, Connect, message_size
from gateway.mqtt.reason_codes import ReasonCode
from gateway.settings.broker import NEVER, BrokerSettings


class Refusal(NamedTuple):
    """Why a CONNECT is refused; `details` are for the log only."""

    code: ReasonCode
    reason: str
    details: str = ""


def examine(state: State, client: Client, packet: Connect) -> Refusal | None:
    """Return why an authenticated client is refused, None if it is accepted."""
    return (
        _examine_mount_point(client, packet)
        or _examine_owner(state, client, packet)
        or _examine_will(state, client, packet)
        or _examine_session(state, client, packet)
    )


def longest_expiry(settings: BrokerSettings, client: Client, username: str | None) -> int:
    """Return for how many seconds a session of this client may outlive its connection."""
    if client.proven and username is not None:
        return settings.maximum_session_expiry
    return min(settings.maximum_session_expiry, settings.maximum_anonymous_session_expiry)


def granted_expiry(settings: BrokerSettings, client: Client, packet: Connect) -> int:
    """Return the seconds that the session outlives its connection: the request, up to the limit."""
    if packet.protocol_version == MQTT_5:
        interval = packet.properties.session_expiry_interval or 0
    else:  # [MQTT-3.1.2-6] of MQTT 3.1.1
        interval = 0 if packet.clean_start else NEVER
    return min(interval, longest_expiry(settings, client, packet.username))


def greet(client: Client, packet: Connect) -> Refusal | None:
    """Return why the client is refused before authentication, None if it is not."""
    if client.info.refusal is not None:
        return Refusal(ReasonCode.QUOTA_EXCEEDED, client.info.refusal)
    method = packet.properties.authentication_method
    if method is not None and method not in client.info.authentication_methods:
        # [MQTT-4.12.0-1]
        reason = f"authentication method {method[:SHOWN]!r} is not supported"
        return Refusal(ReasonCode.BAD_AUTHENTICATION_METHOD, reason)
    if is_own_name(packet.client_id):
        reason = f"{packet.client_id[:SHOWN]!r} is a name of the gateway's own"
        return Refusal(ReasonCode.CLIENT_IDENTIFIER_NOT_VALID, reason)
    if not packet.client_id and not _may_be_assigned(packet):
        reason = (
            "an empty client identifier needs MQTT 3.1.1 or 5, and before MQTT 5 a clean session"
        )
        return Refusal(ReasonCode.CLIENT_IDENTIFIER_NOT_VALID, reason)
    return None


def _may_be_assigned(packet: Connect) -> bool:
    """Return whether the client identifier may be empty: MQTT 3.1 wants 1 to 23 characters."""
    if packet.protocol_version == MQTT_3_1_1:
        return packet.clean_start  # [MQTT-3.1.3-8] of MQTT 3.1.1
    return packet.protocol_version == MQTT_5


def _examine_mount_point(client: Client, packet: Connect) -> Refusal | None:
    """Refuse a client whose names cannot be a part of the listener's mount point."""
    if not client.info.access.mount_point or access_of(client, packet).prefix != NOWHERE:
        return None
    reason = (
        f"the mount point {client.info.access.mount_point!r} needs a name that is not empty and "
        "has no /, + or #"
    )
    return Refusal(ReasonCode.CLIENT_IDENTIFIER_NOT_VALID, reason)


def _examine_owner(state: State, client: Client, packet: Connect) -> Refusal | None:
    """Refuse a client whose identifier belongs to another user's session."""
    session = state.sessions.get(packet.client_id)
    if session is None or is_owner(session, packet.username, origin_of(client)):
        return None
    if client.info.anyone_takes_over:
        return None
    state.counters.add("tidegate/access/takeovers_refused")
    owner = user_of(session.username) or " of clients without a user name"
    if session.username is not None and session.username == packet.username:
        owner += ", which a password proved"
    details = f": it is a session{owner}, the listener was {client.info.listener or 'unnamed'}"
    reason = "the client identifier is that of another user's session"
    return Refusal(ReasonCode.CLIENT_IDENTIFIER_NOT_VALID, reason, details)


def _examine_will(state: State, client: Client, packet: Connect) -> Refusal | None:
    """Refuse a will now that could not be published later."""
    will = packet.will
    if will is None:
        return None
    shares, holder = state.shares, holder_of(client, packet.username)
    refusal = "there is no memory left for a will" if state.queue_memory.full else ""
    if shares.refuse(shares.will_bytes, packet.client_id, holder, message_size(will)):
        refusal = shares.refusal
    if refusal:
        state.counters.add("tidegate/refused/wills")
        return Refusal(ReasonCode.QUOTA_EXCEEDED, refusal)
    fault = state.topic_limits.fault(will.topic)
    if fault:
        state.counters.add("tidegate/refused/topic_names")
        return Refusal(ReasonCode.TOPIC_NAME_INVALID, f"the will's topic {fault}")
    own = is_state_of(will.topic, packet.client_id)
    if not own and not access_of(client, packet).rights(will.topic) & WRITE:
        state.counters.add("tidegate/access/wills")
        reason = f"the will's topic {will.topic[:SHOWN]!r} is not writable"
        return Refusal(ReasonCode.NOT_AUTHORIZED, reason)
    if state.settings.check_payload_format and not is_valid_payload_format(will):
        state.counters.add("tidegate/refused/payload_formats")
        return Refusal(ReasonCode.PAYLOAD_FORMAT_INVALID, "the will's payload is not UTF-8")
    return None


def _examine_session(state: State, client: Client, packet: Connect) -> Refusal | None:
    """Refuse a session that would exceed a limit."""
    session, shares = state.sessions.get(packet.client_id), state.shares
    limit = state.settings.maximum_persistent_sessions
    reason = ""
    if session is None and not state.memory.has_memory_for(packet.client_id, packet.username):
        reason = "there is no memory left for a session"
    elif (session is None or not session.persistent) and granted_expiry(
        state.settings, client, packet
    ):
        holder = holder_of(client, packet.username)
        if shares.sessions.total >= limit:
            reason = f"there are {limit} persistent sessions, the maximum"
        elif shares.refuse(shares.sessions, packet.client_id, holder):
            reason = shares.refusal
    if not reason:
        return None
    state.counters.add("tidegate/sessions/rejected")
    return Refusal(ReasonCode.QUOTA_EXCEEDED, reason)
