"""Messages whose Message Expiry Interval passes while they wait (MQTT 5, section 3.3.2.3.3).

Nothing that has expired is sent; this is what takes its memory back where nothing is sent: from
the retained messages, and from the queues of clients that are away.
"""

from collections.abc import Iterator
from typing import TYPE_CHECKING, Final

from gateway.broker.instant import Instant

if TYPE_CHECKING:
    from gateway.broker.broker import Broker

SWEEP_INTERVAL = 10.0
"""Seconds between two looks for what has expired."""

MESSAGES_AT_ONCE = 1_000
"""Retained messages with an expiry interval that are looked at in one turn: some 2 ms."""

SESSIONS_AT_ONCE = 200
"""Sessions, and channels, whose queues are looked at in one turn."""

_KEY: Final = "expiry"
_END: Final = object()

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
    """Remove what has expired, now and at each interval, a piece in a turn [MQTT-3.3.2-5]."""
    look_at_clock(broker, instant)
    _go_on(broker, _pieces(broker, instant), instant)


def _go_on(broker: "Broker", pieces: Iterator[None], instant: Instant) -> None:
    if next(pieces, _END) is _END:
        due = instant.monotonic + SWEEP_INTERVAL
        broker.deadlines.set(_KEY, due, lambda _, later: sweep(broker, later))
        return
    broker.deadlines.set_next(_KEY, instant, lambda _, later: _go_on(broker, pieces, later))


def _pieces(broker: "Broker", instant: Instant) -> Iterator[None]:
    """Remove what has expired at an instant; others may have their turn at each item, if any."""
    expiring = broker.retained.expiring
    for first in range(0, len(expiring), MESSAGES_AT_ONCE):
        if first:
            yield
        some = expiring[first : first + MESSAGES_AT_ONCE]
        gone = broker.retained.drop_expired(some, instant.monotonic)
        broker.store.forget_retained([each.topic for each in gone])
        for each in gone:
            broker.shares.count_retained(each, None)
    sessions = [*broker.sessions.values(), *broker.channels]
    expired = 0
    for first in range(0, len(sessions), SESSIONS_AT_ONCE):
        if first:
            yield
        for session in sessions[first : first + SESSIONS_AT_ONCE]:
            expired += session.drop_expired(instant.monotonic)
    if expired:
        broker.counters.add("publish/messages/expired", expired)
    broker.store.sweep()
