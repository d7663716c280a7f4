"""What becomes of a client's will (MQTT 5, section 3.1.2.5)."""

import logging

from gateway.access.listeners import Listeners
from gateway.access.rule import WRITE
from gateway.broker.access import current
from gateway.broker.instant import Instant
from gateway.broker.publishing.forward import publish
from gateway.broker.shares import Shares
from gateway.broker.state import State
from gateway.mqtt.message import Message
from gateway.mqtt.message_size import message_size
from gateway.mqtt.packets import Will
from gateway.session.session import Session

logger = logging.getLogger(__name__)


def set_will(state: State, session: Session, will: Will | None) -> None:
    """Give the session's client this will in place of its last one, or none."""
    count_will(state.shares, session, will)
    session.will = will
    if will is None or session.durability_class.commit_within is None:
        state.store.drop_will(session.client_id)
    else:
        state.store.keep_will(session.client_id, session.username, session.origin, will)


def count_will(shares: Shares, session: Session, will: Will | None) -> None:
    """Count a will in place of the session's last one."""
    wills, before = shares.will_bytes, session.will
    if before is not None:
        wills.remove(session.client_id, message_size(before))
    if will is not None:
        wills.add(session.client_id, session.holder, message_size(will))


def delay_will(state: State, session: Session, will: Will, instant: Instant) -> None:
    """Publish the will of a session that goes on, after its Will Delay Interval."""
    delay = will.properties.will_delay_interval or 0
    if delay:
        state.store.postpone_will(session.client_id, instant.wall + 1000 * delay)
        publish_will_at(state, session, will, instant.monotonic + delay)
    else:
        publish_will(state, session, will, instant)


def publish_will_at(state: State, session: Session, will: Will, due: float) -> None:
    """Publish the will at the monotonic second `due`, unless its client is back before."""
    state.deadlines.set(
        ("will", session.client_id),
        due,
        lambda _, later: publish_will(state, session, will, later),
    )


def publish_will(state: State, session: Session, will: Will, instant: Instant) -> None:
    """Publish the will and forget it, so that it is published once.

    Its user may be no user any more, or may have lost the right to write the topic, at the listener
    by which the client came.
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
    """Return why its user may not have the will published now, nothing if it may."""
    if not listeners.has_user(session.username, session.origin):
        return "the user is gone"
    if not current(session.granted, session).rights(will.topic) & WRITE:
        return "the user may not write the topic"
    return ""
