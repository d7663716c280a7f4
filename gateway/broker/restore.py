"""Restores the state of an earlier run, before anyone can connect."""

import logging

from gateway.broker import sessions
from gateway.broker.access import restore_rights
from gateway.broker.instant import Instant
from gateway.broker.own_names import DELAYS, PREFIX
from gateway.broker.state import State
from gateway.broker.subscribing import subscribe
from gateway.broker.subscribing.expressions import TooManyExpressions
from gateway.mqtt.delivery_policy import PolicyError, read_policy
from gateway.mqtt.errors import MqttError
from gateway.mqtt.publication import Publication
from gateway.mqtt.topics import check_topic_filter
from gateway.routing.subscriptions.subscription import Subscription
from gateway.session import continuation
from gateway.session.restored import (
    Restored,
    RestoredSession,
    RestoredWill,
    StoredSubscription,
    seconds_since,
)
from gateway.session.session import Session
from gateway.settings.broker import NEVER, BrokerSettings
from gateway.where.language.errors import WhereError

logger = logging.getLogger(__name__)

WILL_GRACE = 5.0
"""Seconds that a client has to reconnect after a restart before its will is published.

The restart itself has ended all connections, so it says nothing about the client.
"""


def restore(state: State, stored: Restored, instant: Instant) -> None:
    """Restore sessions, retained messages and wills."""
    for retained in stored.retained:
        _restore_retained(state, retained, instant)
    for session in stored.sessions:
        # before their consumers' sessions, with which they may begin
        if session.client_id.startswith(PREFIX):
            state.channels.restore(session)
    for session in stored.sessions:
        if session.client_id.startswith(PREFIX):
            continue
        if session.client_id == DELAYS:
            state.delays.restore(session)
        else:
            _restore_session(state, session, instant)
    state.channels.start()
    for will in stored.wills:
        _restore_will(state, will, instant)


def _restore_retained(state: State, publication: Publication, instant: Instant) -> None:
    if publication.expired(instant.monotonic):
        state.store.forget_retained([publication.topic])
    elif state.retained.set(publication):
        state.shares.count_retained(None, publication)
    else:
        state.counters.add("tidegate/retained/rejected")


def _restore_session(state: State, stored: RestoredSession, instant: Instant) -> None:
    session = sessions.begin(state, stored.client_id)
    sessions.set_username(state.memory, session, stored.username)
    restore_rights(state.listeners, session, stored.home)
    session.durability_class = state.durability_classes.of_client(stored.client_id, None)
    session.expiry_interval = stored.expiry_interval
    session.persist_in(stored.journal)
    shortened = _shorten_expiry(state.settings, session)
    if session.persistent:
        sessions.count_session(state.shares, session, persistent=True)
    awaiting: list[tuple[Subscription, StoredSubscription]] = []
    for each in stored.subscriptions:
        subscription = _restore_subscription(state, session, each)
        if subscription is not None and each.awaits_retained:
            awaiting.append((subscription, each))
    for packet_id in stored.incoming:
        session.incoming.add(packet_id)
    continuation.restore(
        session, stored.spans, stored.tail, connected=stored.disconnected_at is None
    )
    session.unchecked = session.queue.messages > 0  # access rules may have changed since
    disconnected_at = stored.disconnected_at
    if disconnected_at is None:
        disconnected_at = instant.wall
        continuation.note_departure(session, disconnected_at)
    for subscription, each in awaiting:
        state.replays.begin(session, subscription, each, instant)
    if session.expiry_interval != NEVER:
        away = 0.0 if shortened else seconds_since(disconnected_at, instant.wall)
        sessions.expire_at(state, session, instant.monotonic + session.expiry_interval - away)


def _shorten_expiry(settings: BrokerSettings, session: Session) -> bool:
    """Limit the expiry of a session without a user name to that of a new one.

    Return if it was longer.
    """
    longest = max(1, settings.maximum_anonymous_session_expiry)
    if session.username is not None or session.expiry_interval <= longest:
        return False
    session.expiry_interval = longest
    session.journal.store(longest, None)
    return True


def _restore_subscription(
    state: State, session: Session, stored: StoredSubscription
) -> Subscription | None:
    """Restore a subscription; return None, and log it, if that is impossible."""
    try:
        check_topic_filter(stored.topic_filter)
        read_policy(stored.deliver, stored.every)
        where = None
        if stored.where is not None:
            where = state.expressions.get(
                stored.where, session, identity=stored.identity, always=True
            )
    except (MqttError, WhereError, TooManyExpressions, PolicyError) as error:
        logger.error(  # noqa: TRY400 - the fault is in the data; a traceback says nothing
            "client %r has lost its subscription to %r: %s",
            session.client_id,
            stored.topic_filter,
            error,
        )
        state.counters.add("tidegate/storage/unreadable")
        return None
    return subscribe.route(state, session, stored, where)


def _restore_will(state: State, stored: RestoredWill, instant: Instant) -> None:
    """Publish the will after the rest of its delay, unless the client reconnects soon.

    Only the will of a resumable session was delayed; that of any other ended with its connection.
    """
    session = state.sessions.get(stored.client_id)
    persistent = session is not None
    if session is None:
        session = sessions.begin(state, stored.client_id)
        sessions.set_username(state.memory, session, stored.username)
        restore_rights(state.listeners, session, stored.origin)
        session.durability_class = state.durability_classes.of_client(stored.client_id, None)
    sessions.count_will(state.shares, session, stored.will)
    session.will = stored.will
    session.origin = origin = state.listeners.origin(stored.origin)
    granted = state.listeners.access(session.username, session.client_id, origin)
    session.grant(session.access, granted)
    if persistent:
        delay = float(stored.will.properties.will_delay_interval or 0)
        if stored.due is not None:
            delay = min(delay, (stored.due - instant.wall) / 1000)
        due = instant.monotonic + max(delay, WILL_GRACE)
        sessions.publish_will_at(state, session, stored.will, due)
    else:
        sessions.expire_at(state, session, instant.monotonic + WILL_GRACE)
