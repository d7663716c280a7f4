"""How sessions begin, are resumed, are left and end, and what becomes of their wills."""

from typing import TYPE_CHECKING

from gateway.broker import fanout
from gateway.broker.application_message import make_message
from gateway.broker.client import Client
from gateway.broker.instant import Instant
from gateway.mqtt.packets import Connect, Will
from gateway.mqtt.reason_codes import ReasonCode
from gateway.session.session import NEVER, Session

if TYPE_CHECKING:
    from gateway.broker.broker import Broker


def take_over(broker: "Broker", client_id: str, instant: Instant) -> None:
    """End the connection that uses this client identifier now, if any [MQTT-3.1.4-3]."""
    holder = broker.clients.get(client_id)
    if holder is not None:
        holder.disconnect(ReasonCode.SESSION_TAKEN_OVER, "another connection has this client id")
        leave(broker, holder, instant)


def resume(broker: "Broker", packet: Connect, instant: Instant) -> tuple[Session, bool]:
    """Return the session for an accepted CONNECT, and whether it existed before.

    [MQTT-3.1.2-4] Clean Start discards what was there, [MQTT-3.1.2-5] otherwise it goes on,
    [MQTT-3.1.2-6] or begins. A will that waited for its delay is dropped [MQTT-3.1.3-9].
    """
    session = broker.sessions.get(packet.client_id)
    if session is not None and packet.clean_start:
        end(broker, session, instant)
        session = None
    if session is not None:
        session.will = None
        _stop_waiting(broker, session)
        return session, True
    session = Session(packet.client_id, broker.counters, broker.session_limits, broker.traffic)
    broker.sessions[packet.client_id] = session
    return session, False


def set_expiry(broker: "Broker", session: Session, interval: int) -> None:
    """Let the session outlive its connections by `interval` seconds, or for ever with NEVER."""
    broker.persistent_sessions += (interval > 0) - session.persistent
    session.expiry_interval = interval


def leave(broker: "Broker", client: Client, instant: Instant) -> None:
    """Detach a client whose connection ended from its session."""
    session = client.session
    if session is None or broker.clients.get(session.client_id) is not client:
        return
    session.detach()
    del broker.clients[session.client_id]
    if not session.persistent:
        end(broker, session, instant)
        return
    if session.expiry_interval != NEVER:
        broker.deadlines.set(
            ("expiry", session.client_id),
            instant.monotonic + session.expiry_interval,
            lambda later: _expire(broker, session, later),
        )
    if session.will is not None:
        _delay_will(broker, session, session.will, instant)


def end(broker: "Broker", session: Session, instant: Instant) -> None:
    """Forget a session; a will that still waits is published now [MQTT-3.1.2-8]."""
    for number in session.subscriptions.values():
        broker.router.discard(number)
    session.subscriptions.clear()
    left_over = session.left_over()
    session.discard()
    set_expiry(broker, session, 0)
    del broker.sessions[session.client_id]
    _stop_waiting(broker, session)
    fanout.share_out(broker, left_over, instant)
    if session.will is not None:
        _publish_will(broker, session, session.will, instant)


def _expire(broker: "Broker", session: Session, instant: Instant) -> None:
    broker.counters.add("clients/expired")
    end(broker, session, instant)


def _stop_waiting(broker: "Broker", session: Session) -> None:
    broker.deadlines.discard(("expiry", session.client_id))
    broker.deadlines.discard(("will", session.client_id))


def _delay_will(broker: "Broker", session: Session, will: Will, instant: Instant) -> None:
    delay = will.properties.will_delay_interval or 0
    if not delay:
        _publish_will(broker, session, will, instant)
        return
    broker.deadlines.set(
        ("will", session.client_id),
        instant.monotonic + delay,
        lambda later: _publish_will(broker, session, will, later),
    )


def _publish_will(broker: "Broker", session: Session, will: Will, instant: Instant) -> None:
    session.will = None
    message = make_message(broker.durability_classes, session, will, instant)
    fanout.publish(broker, message, instant, only_once=True)
