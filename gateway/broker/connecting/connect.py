"""Handles CONNECT, DISCONNECT and PINGREQ (MQTT 5, sections 3.1.4, 3.14 and 3.12)."""

from functools import partial

from gateway.broker import sessions
from gateway.broker.client import HELD, Client, Pieces, session_of
from gateway.broker.connecting import enhanced_authentication
from gateway.broker.connecting.admission import Refusal, greet, longest_expiry
from gateway.broker.connecting.connack import admit, refuse
from gateway.broker.connecting.connection_info import Credentials
from gateway.broker.instant import Instant
from gateway.broker.state import State
from gateway.mqtt.connection import NO_LIMIT
from gateway.mqtt.errors import ProtocolError
from gateway.mqtt.packets import (
    USER_PROPERTY_OVERHEAD,
    Connect,
    Disconnect,
    Packet,
    PingResp,
    message_size,
)
from gateway.mqtt.reason_codes import ReasonCode

CONNECT_OVERHEAD = 1_000
"""Bytes of a CONNECT beside its texts: the objects of the packet and of the pending decision."""


def log_in(state: State, client: Client, packet: Connect, instant: Instant) -> None:
    """Accept the client if its password is right, else refuse it.

    The CONNECT waits for that check, and for the delay that its last failures cost.
    """
    credentials = _credentials(client, packet)
    wait = state.failed_logins.wait(credentials[:2], instant.monotonic)
    if wait:
        state.counters.add("tidegate/access/logins_delayed")
        again = partial(log_in, state)
        due = instant.monotonic + wait
        state.deadlines.set(client, due, lambda one, later: again(one, packet, later))
    else:
        state.deadlines.discard(client)
    client.pieces = HELD
    if not wait:
        decide = partial(_decide, state, client, packet)
        client.authenticator.check(credentials, instant, decide)
    if client.pieces is HELD:
        client.held_connect = _size(packet)
        state.memory.note(client, client.held_below)


def _decide(
    state: State, client: Client, packet: Connect, right: bool | None, instant: Instant
) -> None:
    """Continue with a client whose password is right or wrong; None if it was not checked."""
    if client.closing:
        return
    who = _credentials(client, packet)[:2]
    if right is not None and state.failed_logins.wait(who, instant.monotonic):
        # a concurrent guess was wrong: wait for its delay, too
        log_in(state, client, packet, instant)
    elif right:
        state.failed_logins.forget(who)
        _release(client)
        admit(state, client, packet, instant)
    elif right is None:
        _release(client)
        refusal = Refusal(ReasonCode.QUOTA_EXCEEDED, "too many passwords wait to be checked")
        refuse(state, client, packet, refusal)
    else:
        state.counters.add("tidegate/access/logins_failed")
        wait = state.failed_logins.add(who, instant.monotonic) if packet.username else 0.0
        if wait:
            due = instant.monotonic + wait
            state.deadlines.set(client, due, lambda one, _: _refuse_login(state, one, packet))
        else:
            _refuse_login(state, client, packet)


def _refuse_login(state: State, client: Client, packet: Connect) -> None:
    """Tell the client that its user name or password is wrong."""
    _release(client)
    if packet.username is None:
        refusal = Refusal(ReasonCode.NOT_AUTHORIZED, "this listener requires a user name")
    else:
        code = ReasonCode.BAD_USER_NAME_OR_PASSWORD
        refusal = Refusal(code, "user name or password is wrong")
    refuse(state, client, packet, refusal)


def _size(packet: Connect) -> int:
    """Return about the bytes that a CONNECT occupies while it waits."""
    texts = (packet.client_id, packet.username or "", packet.password or b"")
    size = CONNECT_OVERHEAD + sum(len(text) for text in texts)
    for name, value in packet.properties.user_properties:
        size += USER_PROPERTY_OVERHEAD + len(name) + len(value)
    return size if packet.will is None else size + message_size(packet.will)


def _release(client: Client) -> None:
    """Handle what the client sent after its CONNECT."""
    client.pieces = None
    client.held_connect = 0
    client.connection.on_output()


def _credentials(client: Client, packet: Connect) -> Credentials:
    """Return the client's credentials; failures are counted by address and user name."""
    return Credentials(client.peer.rpartition(":")[0], packet.username, packet.password)


def handle_connect(
    state: State, client: Client, packet: Connect, instant: Instant
) -> Pieces | None:
    """Authenticate the client, then accept or refuse it.

    Returns HELD while the decision is pending.
    """
    if client.session is not None or client.authentication is not None:
        raise ProtocolError("a second CONNECT")  # [MQTT-3.1.0-2]
    state.connects += 1
    client.problem_information = packet.properties.request_problem_information != 0
    client.connection.maximum_packet_size = packet.properties.maximum_packet_size or NO_LIMIT
    refusal = greet(client, packet)
    method = client.info.authentication_methods.get(packet.properties.authentication_method)
    if refusal is None and method is not None:
        enhanced_authentication.begin(state, client, method, packet, instant)
        return None
    if refusal is not None:
        refuse(state, client, packet, refusal)
    elif client.info.username is not None:
        packet.username = client.info.username
        admit(state, client, packet, instant)
    else:
        log_in(state, client, packet, instant)
    return client.pieces


def handle_disconnect(state: State, client: Client, packet: Disconnect, _instant: Instant) -> None:
    """End the connection at the client's request; its will is dropped [MQTT-3.14.4-3]."""
    if client.session is None and client.authentication is not None:
        client.close()  # its authentication was not finished [MQTT-3.1.2-30]
        return
    session = session_of(client)
    interval = packet.properties.session_expiry_interval
    if interval is not None:
        interval = min(interval, longest_expiry(state.settings, client, session.username))
        if interval and not session.persistent:
            # [MQTT-3.14.2-2] with section 3.14.2.2.2
            raise ProtocolError("Session Expiry Interval was 0 at CONNECT and cannot rise")
        sessions.set_expiry(state, session, interval)
    if packet.reason_code == ReasonCode.SUCCESS:
        sessions.set_will(state, session, None)
    client.sent_disconnect = True
    client.close()


def handle_pingreq(_state: State, client: Client, _packet: Packet, _instant: Instant) -> None:
    """Answer [MQTT-3.12.4-1]."""
    session_of(client)
    client.send(PingResp())
