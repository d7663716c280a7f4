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


def restore(state: State, kept: Restored, instant: Instant) -> None:
    """Restore sessions, retained messages and wills."""
    for retained in kept.retained:
        _restore_retained(state, retained, instant)
    for session in kept.sessions:
        # before their consumers' sessions, with which they may begin
        if session.client_id.startswith(PREFIX):
            state.channels.restore(session)
    for session in kept.sessions:
        if session.client_id.startswith(PREFIX):
            continue
        if session.client_id == DELAYS:
            state.delays.restore(session)
        else:
            _restore_session(state, session, instant)
    state.channels.start()
    for will in kept.wills:
        _restore_will(state, will, instant)


def _restore_retained(state: State, publication: Publication, instant: Instant) -> None:
    if publication.expired(instant.monotonic):
        state.store.forget_retained([publication.topic])
    elif state.retained.set(publication):
        state.shares.count_retained(None, publication)
    else:
        state.counters.add("tidegate/retained/rejected")


def _restore_session(state: State, kept: RestoredSession, instant: Instant) -> None:
    session = sessions.begin(state, kept.client_id)
    sessions.set_username(state.memory, session, kept.username)
    restore_rights(state.listeners, session, kept.home)
    session.durability_class = state.durability_classes.of_client(kept.client_id, None)
    session.expiry_interval = kept.expiry_interval
    session.persist_in(kept.journal)
    shortened = _shorten_expiry(state.settings, session)
    if session.persistent:
        sessions.count_session(state.shares, session, persistent=True)
    awaiting: list[tuple[Subscription, StoredSubscription]] = []
    for each in kept.subscriptions:
        subscription = _restore_subscription(state, session, each)
        if subscription is not None and each.awaits_retained:
            awaiting.append((subscription, each))
    for packet_id in kept.incoming:
        session.incoming.add(packet_id)
    continuation.restore(session, kept.spans, kept.tail, connected=kept.left_at is None)
    session.unchecked = session.queue.messages > 0  # access rules may have changed since
    left_at = kept.left_at
    if left_at is None:
        left_at = instant.wall
        continuation.note_departure(session, left_at)
    for subscription, each in awaiting:
        state.replays.begin(session, subscription, each, instant)
    if session.expiry_interval != NEVER:
        away = 0.0 if shortened else seconds_since(left_at, instant.wall)
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
    state: State, session: Session, kept: StoredSubscription
) -> Subscription | None:
    """Restore a subscription; return None, and log it, if that is impossible."""
    try:
        check_topic_filter(kept.topic_filter)
        read_policy(kept.deliver, kept.every)
        where = None
        if kept.where is not None:
            where = state.expressions.get(kept.where, session, identity=kept.identity, always=True)
    except (MqttError, WhereError, TooManyExpressions, PolicyError) as error:
        logger.error(  # noqa: TRY400 - the fault is in the data; a traceback says nothing
            "client %r has lost its subscription to %r: %s",
            session.client_id,
            kept.topic_filter,
            error,
        )
        state.counters.add("tidegate/storage/unreadable")
        return None
    return subscribe.route(state, session, kept, where)


def _restore_will(state: State, kept: RestoredWill, instant: Instant) -> None:
    """Publish the will after the rest of its delay, unless the client reconnects soon.

    Only the will of a resumable session was delayed; that of any other ended with its connection.
    """
    session = state.sessions.get(kept.client_id)
    persistent = session is not None
    if session is None:
        session = sessions.begin(state, kept.client_id)
        sessions.set_username(state.memory, session, kept.username)
        restore_rights(state.listeners, session, kept.origin)
        session.durability_class = state.durability_classes.of_client(kept.client_id, None)
    sessions.count_will(state.shares, session, kept.will)
    session.will = kept.will
    session.origin = origin = state.listeners.origin(kept.origin)
    granted = state.listeners.access(session.username, session.client_id, origin)
    session.grant(session.access, granted)
    if persistent:
        delay = float(kept.will.properties.will_delay_interval or 0)
        if kept.due is not None:
            delay = min(delay, (kept.due - instant.wall) / 1000)
        due = instant.monotonic + max(delay, WILL_GRACE)
        sessions.publish_will_at(state, session, kept.will, due)
    else:
        sessions.expire_at(state, session, instant.monotonic + WILL_GRACE)
