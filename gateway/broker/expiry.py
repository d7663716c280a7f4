"""Messages whose Message Expiry Interval passes while they wait (MQTT 5, section 3.3.2.3.3).

Nothing that has expired is sent; this is what takes its memory back where nothing is sent: from
the retained messages, and from the queues of clients that are away.
"""

from typing import TYPE_CHECKING

from gateway.broker.instant import Instant

if TYPE_CHECKING:
    from gateway.broker.broker import Broker

SWEEP_INTERVAL = 10.0
"""Seconds between two looks for what has expired."""


def sweep(broker: "Broker", instant: Instant) -> None:
    """Remove what has expired, now and at each interval [MQTT-3.3.2-5]."""
    broker.store.forget_retained(broker.retained.drop_expired(instant.monotonic))
    expired = sum(session.drop_expired(instant.monotonic) for session in broker.sessions.values())
    if expired:
        broker.counters.add("publish/messages/expired", expired)
    due = instant.monotonic + SWEEP_INTERVAL
    broker.deadlines.set("expiry", due, lambda later: sweep(broker, later))
