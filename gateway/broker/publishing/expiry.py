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


STEP = 1_000
"""Milliseconds by which the wall clock must gain on the monotonic one between two looks."""


def look_at_clock(broker: "Broker", instant: Instant) -> None:
    """Tell the store when the wall clock was set forward, as a board's without a battery is.

    By what is kept so much more time would seem to have passed. That a clock was set back only
    makes things last longer, and is left alone.
    """
    ahead = instant.wall - round(1000 * instant.monotonic)
    gained = 0 if broker.clock_ahead is None else ahead - broker.clock_ahead
    if broker.clock_ahead is None or abs(gained) >= STEP:
        broker.clock_ahead = ahead
    if gained >= STEP:
        broker.store.clock_set_forward(gained, instant.wall)


def sweep(broker: "Broker", instant: Instant) -> None:
    """Remove what has expired, now and at each interval [MQTT-3.3.2-5]."""
    look_at_clock(broker, instant)
    broker.store.forget_retained(broker.retained.drop_expired(instant.monotonic))
    sessions = (*broker.sessions.values(), *broker.channels)
    expired = sum(session.drop_expired(instant.monotonic) for session in sessions)
    if expired:
        broker.counters.add("publish/messages/expired", expired)
    broker.store.sweep()
    due = instant.monotonic + SWEEP_INTERVAL
    broker.deadlines.set("expiry", due, lambda _, later: sweep(broker, later))
