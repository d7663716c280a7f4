"""Removes messages whose Message Expiry Interval passes while they wait.

MQTT 5, section 3.3.2.3.3. An expired message is never sent; this sweep frees its memory where
nothing is being sent: among retained messages, and in queues of disconnected clients.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from math import nan
from typing import Final

from gateway.broker.deadlines import Deadlines
from gateway.broker.instant import Instant
from gateway.broker.shares import Shares
from gateway.broker.store import Store
from gateway.counters import Counters
from gateway.mqtt.codec.publish import of_fields
from gateway.mqtt.publication import Publication
from gateway.mqtt.publish_encoder import publication_of_one
from gateway.mqtt.topics import topic_matches
from gateway.routing.retained.retained import RetainedMessages
from gateway.session.session import Session
from gateway.settings.broker import RetainedExpiry

SWEEP_INTERVAL = 10.0
"""Seconds between two sweeps."""

MESSAGES_AT_ONCE = 1_000
"""Retained messages with an expiry interval that are checked in one turn: some 2 ms."""

SESSIONS_AT_ONCE = 200
"""Sessions, and channels, whose queues are checked in one turn."""

_KEY: Final = "expiry"
_END: Final = object()

STEP = 1_000
"""Milliseconds by which the wall clock must gain on the monotonic one between two checks."""


class Expiry:
    """Removes expired messages, at each SWEEP_INTERVAL, in pieces [MQTT-3.3.2-5].

    `clock_ahead` is how many milliseconds the wall clock was ahead of the monotonic one at the last
    check, NaN before the first: no difference from it is too large.
    """

    __slots__ = (
        "_channels",
        "_counters",
        "_deadlines",
        "_retained",
        "_sessions",
        "_shares",
        "_store",
        "clock_ahead",
    )

    def __init__(
        self,
        retained: RetainedMessages,
        sessions: Mapping[str, Session],
        channels: Iterable[Session],
        shares: Shares,
        store: Store,
        deadlines: Deadlines,
        counters: Counters,
    ) -> None:
        self._retained = retained
        self._sessions = sessions
        self._channels = channels
        self._shares = shares
        self._store = store
        self._deadlines = deadlines
        self._counters = counters
        self.clock_ahead: float = nan
        deadlines.set(_KEY, 0.0, self._sweep)

    def check_clock(self, instant: Instant) -> None:
        """Report to the store that the wall clock was set forward, as on boards without a battery.

        Stored messages would otherwise seem that much older. A clock that was set back only makes
        things last longer.
        """
        ahead = instant.wall - round(1000 * instant.monotonic)
        gained = ahead - self.clock_ahead
        if not abs(gained) < STEP:  # or before the first check
            self.clock_ahead = float(ahead)
        if gained >= STEP:
            self._store.clock_set_forward(int(gained), instant.wall)

    def _sweep(self, _: str, instant: Instant) -> None:
        self.check_clock(instant)
        self._go_on(self._pieces(instant), instant)

    def _go_on(self, pieces: Iterator[None], instant: Instant) -> None:
        if next(pieces, _END) is _END:
            self._deadlines.set(_KEY, instant.monotonic + SWEEP_INTERVAL, self._sweep)
        else:
            self._deadlines.set_next(_KEY, instant, lambda _, later: self._go_on(pieces, later))

    def _pieces(self, instant: Instant) -> Iterator[None]:
        """Remove what has expired at an instant; other work may run between the pieces."""
        expiring = self._retained.expiring
        for first in range(0, len(expiring), MESSAGES_AT_ONCE):
            if first:
                yield
            some = expiring[first : first + MESSAGES_AT_ONCE]
            gone = self._retained.drop_expired(some, instant.monotonic)
            self._store.forget_retained([each.topic for each in gone])
            for each in gone:
                self._shares.count_retained(each, None)
        sessions = [*self._sessions.values(), *self._channels]
        expired = 0
        for first in range(0, len(sessions), SESSIONS_AT_ONCE):
            if first:
                yield
            for session in sessions[first : first + SESSIONS_AT_ONCE]:
                expired += session.drop_expired(instant.monotonic)
        if expired:
            self._counters.add("publish/messages/expired", expired)
        self._store.sweep()


def bounded(publication: Publication, bounds: Sequence[RetainedExpiry]) -> Publication:
    """Return one message as it is retained: with no longer expiry than the first bound allows."""
    topic = publication.topic
    maximum = next((each.maximum for each in bounds if topic_matches(each.topic, topic)), None)
    properties = publication.properties
    if maximum is None or (properties.expiry is not None and properties.expiry <= maximum):
        return publication
    fields = replace(properties.fields, message_expiry_interval=maximum)
    payload, qos = publication.packets.one(0), publication.qos
    name = publication.topic_name
    made = publication_of_one(topic, name, payload, qos, publication.retain, of_fields(fields))
    made.client_id, made.username = publication.client_id, publication.username
    made.received_at, made.arrived = publication.received_at, publication.arrived
    made.commit_within = publication.commit_within
    return made
