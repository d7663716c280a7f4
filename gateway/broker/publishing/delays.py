"""Messages that their publisher delays: `$delay/<seconds>/<topic>`.

Such a message waits, on disk if its QoS is 1 or 2, and is then published to its topic as if its
publisher had sent it at that moment. It is acknowledged when it is stored, not when it is
published.
"""

import heapq

from gateway.access.topics import delay_of, undelayed
from gateway.broker.deadlines import Deadlines
from gateway.broker.instant import Instant
from gateway.broker.own_names import DELAYS
from gateway.broker.publishing.inline import Publish
from gateway.broker.publishing.refusals import Outcome, Refusals
from gateway.broker.shares import Shares
from gateway.broker.store import Store
from gateway.counters import Counters
from gateway.mqtt.publication import Publication
from gateway.mqtt.reason_codes import FAILURE, ReasonCode
from gateway.session.limits import SessionLimits
from gateway.session.restored import RestoredSession
from gateway.session.session import Session
from gateway.session.span import Span
from gateway.session.traffic import Traffic
from gateway.settings.broker import NEVER

MAXIMUM_MESSAGES = 10_000
"""Messages that may wait; one more is refused with 0x97."""

AGAIN = 1.0
"""Seconds after which a message that was refused when due is tried again."""

AT_ONCE = 64
"""Messages that are published in a row: some 4 ms."""

PAUSE = 0.001
"""Seconds from then until the next ones are published."""


class Delays(Session):
    """Delayed messages by the monotonic second at which they are published."""

    __slots__ = (
        "_deadlines",
        "_heap",
        "_order",
        "_publish",
        "_refusals",
        "_shares",
        "_store",
    )

    def __init__(
        self,
        counters: Counters,
        limits: SessionLimits,
        traffic: Traffic,
        deadlines: Deadlines,
        shares: Shares,
        store: Store,
        refusals: Refusals,
        publish: Publish,
    ) -> None:
        super().__init__(DELAYS, counters, limits, traffic)
        self._deadlines = deadlines
        self._shares = shares
        self._store = store
        self._refusals = refusals
        self._publish = publish
        self._heap: list[tuple[float, int, Span]] = []
        self._order = 0  # of messages of the same second

    @property
    def waiting(self) -> int:
        """How many messages wait."""
        return len(self._heap)

    def restore(self, stored: RestoredSession) -> None:
        """Restore the messages of an earlier run."""
        self.expiry_interval = NEVER
        self.persist_in(stored.journal)
        for each in stored.spans:
            self._hold(each.span)
        tail = stored.tail
        if tail is not None:

            def on_page(spans: list[Span], complete: bool, now: float) -> None:
                del now
                for span in spans:
                    self._hold(span)
                if spans and not complete:
                    self.journal.load(spans[-1].last, tail.up_to, on_page)

            self.journal.load(tail.after, tail.up_to, on_page)

    def forward(self, publication: Publication, first: int) -> Outcome:
        """Store messages, from number `first` on, as many as the limits allow."""
        capacity = MAXIMUM_MESSAGES - self.waiting
        count = min(publication.packets.count - first, capacity)
        if count < 1 or self.limits.memory.full:
            self._refusals.for_queue(self)
            return 0, ReasonCode.SUCCESS, ReasonCode.QUOTA_EXCEEDED
        if self._shares.refuse_delayed(publication, first, count):
            count = 1  # one may still fit
            if self._shares.refuse_delayed(publication, first, count):
                self._refusals.for_share(self, self._shares.refusal)
                return 0, ReasonCode.SUCCESS, ReasonCode.QUOTA_EXCEEDED
        publication.barrier = None
        stored = publication.qos > 0 and publication.commit_within is not None
        if stored and not self._store.accepts(len(publication.packets.data)):
            self._refusals.for_disk()
            return 0, ReasonCode.SUCCESS, ReasonCode.QUOTA_EXCEEDED
        span = Span(publication, first, count, min(publication.qos, 1))
        if stored:
            self._open()
            self.journal.enqueue(span, deferred=False)
        self._hold(span)
        return count, ReasonCode.SUCCESS, None

    def _open(self) -> None:
        """Open the journal, so that waiting messages are durable."""
        if not self.persistent:
            self.persist_in(self._store.open(DELAYS, 0.0))
            self.expiry_interval = NEVER
            self.journal.store(NEVER, None)

    def _hold(self, span: Span) -> None:
        publication = span.publication
        for number in range(span.first, span.first + span.count):
            one = span.part(number, 1)
            self.limits.memory.add(one)
            self._shares.count_delayed(publication, number, 1)
            seconds = delay_of(publication.topic_of(number)) or 0
            self._push(publication.arrived + seconds, one)

    def _push(self, due: float, span: Span) -> None:
        self._order += 1
        heapq.heappush(self._heap, (due, self._order, span))
        self._deadlines.set(self, self._heap[0][0], self._publish_due)

    def _publish_due(self, _: "Delays", instant: Instant) -> None:
        for _each in range(AT_ONCE):
            if not self._heap or self._heap[0][0] > instant.monotonic:
                break
            span = heapq.heappop(self._heap)[2]
            if not self._publish_one(span, instant):
                self._push(instant.monotonic + AGAIN, span)
        if self._heap:
            due = max(self._heap[0][0], instant.monotonic + PAUSE)
            self._deadlines.set(self, due, self._publish_due)

    def _publish_one(self, span: Span, instant: Instant) -> bool:
        """Publish a message to its topic, unless it has expired; return False if it is refused."""
        publication = span.publication
        if publication.expired(instant.monotonic):
            self.counters.add("publish/messages/expired")
        else:
            message = publication.new_message(span.first)
            message.topic = undelayed(message.topic)
            if self._publish(message, instant) >= FAILURE:
                return False
        self.journal.done(span, span.first, 1)
        self.limits.memory.remove(span)
        self._shares.count_delayed(publication, span.first, -1)
        return True
