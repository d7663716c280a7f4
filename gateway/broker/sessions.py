"""Begins, resumes, disconnects and ends sessions, and publishes wills."""

import logging

from gateway.access.listeners import Listeners
from gateway.access.rule import WRITE
from gateway.access.topics import is_state_of
from gateway.broker.access import current
from gateway.broker.client import Client
from gateway.broker.deadlines import Deadlines
from gateway.broker.instant import Instant
from gateway.broker.memory_budget import MemoryBudget
from gateway.broker.publishing.forward import publish, share_out
from gateway.broker.shares import GONE, Shares
from gateway.broker.state import State
from gateway.mqtt.message import Message
from gateway.mqtt.packets import Connect, Will, message_size
from gateway.mqtt.reason_codes import ReasonCode
from gateway.session.continuation import note_departure
from gateway.session.journal import NO_JOURNAL
from gateway.session.session import Session
from gateway.settings.broker import NEVER

logger = logging.getLogger(__name__)


def set_will(state: State, session: Session, will: Will | None) -> None:
    """Set or remove the will of the session's client."""
    count_will(state.shares, session, will)
    session.will = will
    if will is None or session.durability_class.commit_within is None:
        state.store.drop_will(session.client_id)
    else:
        state.store.store_will(session.client_id, session.username, session.origin, will)


def count_will(shares: Shares, session: Session, will: Will | None) -> None:
    """Count a will in place of the session's last one."""
    wills, before = shares.will_bytes, session.will
    if before is not None:
        wills.remove(session.client_id, message_size(before))
    if will is not None:
        wills.add(session.client_id, session.holder, message_size(will))


def delay_will(state: State, session: Session, will: Will, instant: Instant) -> None:
    """Publish the will of a continuing session after its Will Delay Interval."""
    delay = will.properties.will_delay_interval or 0
    if delay:
        state.store.postpone_will(session.client_id, instant.wall + 1000 * delay)
        publish_will_at(state, session, will, instant.monotonic + delay)
    else:
        publish_will(state, session, will, instant)


def publish_will_at(state: State, session: Session, will: Will, due: float) -> None:
    """Publish the will at the monotonic second `due`, unless its client reconnects before."""
    state.deadlines.set(
        ("will", session.client_id),
        due,
        lambda _, later: publish_will(state, session, will, later),
    )


def publish_will(state: State, session: Session, will: Will, instant: Instant) -> None:
    """Publish the will and forget it, so that it is published once.

    Its user may have been removed, or have lost the right to write the topic at the listener that
    the client used.
    """
    set_will(state, session, None)
    fault = _fault(state.listeners, session, will)
    if fault:
        state.counters.add("tidegate/access/wills")
        line = "the will of client %.80r of user %.80r on %.80r is not published: %s"
        logger.warning(line, session.client_id, session.username, will.topic, fault)
        return
    message = Message(
        will.topic,
        will.payload,
        will.qos,
        will.retain,
        client_id=session.client_id,
        username=session.username,
        received_at=instant.wall,
        arrived=instant.monotonic,
    )
    message.set_properties(will.properties)
    publish(state, message, instant, session.durability_class, only_once=True)


def _fault(listeners: Listeners, session: Session, will: Will) -> str:
    """Return why its user may not have the will published now, "" if it may."""
    if not listeners.has_user(session.username, session.origin):
        return "the user was removed"
    if is_state_of(will.topic, session.client_id):
        return ""
    if not current(session.granted, session).rights(will.topic) & WRITE:
        return "the user may not write the topic"
    return ""


def take_over(state: State, client_id: str, instant: Instant) -> None:
    """End the connection that uses this client identifier now, if any [MQTT-3.1.4-3]."""
    holder = state.clients.get(client_id)
    if holder is not None:
        holder.disconnect(ReasonCode.SESSION_TAKEN_OVER, "another connection has this client id")
        disconnect(state, holder, instant)


def resume(state: State, packet: Connect, instant: Instant) -> tuple[Session, bool]:
    """Return the session for an accepted CONNECT, and whether it existed before.

    [MQTT-3.1.2-4] Clean Start discards what was there, [MQTT-3.1.2-5] otherwise it goes on,
    [MQTT-3.1.2-6] or begins. A will that waited for its delay is dropped [MQTT-3.1.3-9].
    """
    session = state.sessions.get(packet.client_id)
    if session is not None and not session.persistent:  # restored for its will only
        set_will(state, session, None)
        end(state, session, instant)
        session = None
    if session is not None and packet.clean_start:
        end(state, session, instant)
        session = None
    if session is not None:
        set_will(state, session, None)
        _stop_waiting(state.deadlines, session)
        return session, True
    return begin(state, packet.client_id), False


def catch_up(deadlines: Deadlines, client_id: str, instant: Instant) -> None:
    """Publish a will and end a session that are overdue [MQTT-3.1.2-8], [MQTT-4.1.0-2].

    After the machine was suspended, a CONNECT may be read before the timers run.
    """
    deadlines.run_of(("will", client_id), instant)
    deadlines.run_of(("expiry", client_id), instant)


def begin(state: State, client_id: str) -> Session:
    """Return a new session, which ends with its connection until `set_expiry` says otherwise."""
    session = Session(client_id, state.counters, state.session_limits, state.traffic)
    session.holder = GONE  # until a client connects to it
    state.sessions[client_id] = session
    state.memory.begin_session(client_id)
    return session


def set_username(memory: MemoryBudget, session: Session, username: str | None) -> None:
    """Note the session's owner: the user that logged in last."""
    memory.name_session(session, username)
    session.username = username


def set_expiry(state: State, session: Session, interval: int) -> None:
    """Let the session outlive its connections by `interval` seconds, or for ever with NEVER.

    Its durability class decides at its beginning whether it survives a restart. Messages that are
    only on disk stay there for the present connection, and are deleted with it if the session ends
    then.
    """
    if (interval > 0) != session.persistent:
        count_session(state.shares, session, persistent=interval > 0)
    commit_within = session.durability_class.commit_within
    if interval and not session.persistent and commit_within is not None:
        session.persist_in(state.store.open(session.client_id, commit_within))
    elif not interval and not session.queue.paged:
        _close_journal(session)
    session.expiry_interval = interval
    if session.journal is not NO_JOURNAL:
        session.journal.store(interval, session.username, session.home)


def count_session(shares: Shares, session: Session, *, persistent: bool) -> None:
    """Count a session as persistent from now on, or no longer."""
    if persistent:
        shares.sessions.add(session.client_id, session.holder)
    else:
        shares.sessions.remove(session.client_id)


def disconnect(state: State, client: Client, instant: Instant) -> None:
    """Detach a client whose connection has ended from its session."""
    session = client.session
    if session is None:
        return
    session.delivery.packets += client.connection.packets_sent
    if state.clients.get(session.client_id) is not client:
        return
    session.detach()
    del state.clients[session.client_id]
    if not session.persistent:
        end(state, session, instant)
        return
    state.replays.disconnect(session, instant)
    note_departure(session, instant.wall)
    if session.expiry_interval != NEVER:
        expire_at(state, session, instant.monotonic + session.expiry_interval)
    if session.will is not None:
        delay_will(state, session, session.will, instant)


def expire_at(state: State, session: Session, due: float) -> None:
    """End the session at the monotonic second `due`, unless its client reconnects before."""
    state.deadlines.set(
        ("expiry", session.client_id), due, lambda _, later: _expire(state, session, later)
    )


def end(state: State, session: Session, instant: Instant) -> None:
    """Forget a session; a will that still waits is published now [MQTT-3.1.2-8]."""
    session.ended = True
    state.ended_subscriptions.add(session, instant)
    state.replays.discard_all(session)
    undelivered = session.for_other_members()
    set_expiry(state, session, 0)
    _close_journal(session)
    session.discard()
    del state.sessions[session.client_id]
    state.memory.end_session(session)
    _stop_waiting(state.deadlines, session)
    if undelivered:
        share_out(state.router, state.counters, undelivered, instant.monotonic)
    if session.will is not None:
        publish_will(state, session, session.will, instant)


def _close_journal(session: Session) -> None:
    if session.journal is not NO_JOURNAL:
        session.journal.close(session.undelivered())
        session.journal = NO_JOURNAL


def _expire(state: State, session: Session, instant: Instant) -> None:
    state.counters.add("clients/expired")
    end(state, session, instant)


def _stop_waiting(deadlines: Deadlines, session: Session) -> None:
    deadlines.discard(("expiry", session.client_id))
    deadlines.discard(("will", session.client_id))
