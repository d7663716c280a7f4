"""Conflated subscriptions (`$every`): per interval, at most the newest message of each topic."""

import heapq
import math
from collections.abc import Generator, Iterable

from gateway.access.rule import READ
from gateway.broker.client import Piece
from gateway.broker.deadlines import Deadlines
from gateway.broker.instant import Instant
from gateway.counters import Counters
from gateway.mqtt.delivery_policy import DeliveryPolicy
from gateway.mqtt.publication import Publication
from gateway.mqtt.topics import topic_matches
from gateway.session.queue.memory import QueueMemory
from gateway.session.session import Session
from gateway.session.span import Span
from gateway.settings.broker import BrokerSettings

MEMORY_PART = 4
"""The part of the queues' memory that conflated topics of all clients may occupy: a quarter.

Those of one client may occupy a quarter of that.
"""

TOPIC_OVERHEAD = 400
"""Bytes of a topic beside its name and the held message."""

AT_ONCE = 200
"""Topics that are handled before other clients are served: some 2 ms."""

STEP = 0.1
"""Seconds by which messages may be late at most, so that topics share a timer."""

LATE = 1 / 8
"""The fraction of `$every` by which they may be late, if that is less."""

RETRY = 0.1
"""Seconds after which a congested client is tried again."""


class Topic:
    """A topic of one client: `due` is when the next message may be sent, `span` the newest held.

    It is held for `every` seconds at most, and then sent by its subscription's `policy`.
    """

    __slots__ = ("due", "every", "name", "policy", "span")

    def __init__(self, name: str, now: float) -> None:
        self.name = name
        self.every = 0.0
        self.due = now
        self.span: Span | None = None
        self.policy: DeliveryPolicy | None = None

    @property
    def size(self) -> int:
        """Its bytes, without the held message."""
        return TOPIC_OVERHEAD + 2 * len(self.name)


class Conflation:
    """The sessions with conflated subscriptions: their `topics`, and the `bytes` of these."""

    __slots__ = ("bytes", "counters", "deadlines", "members", "memory", "settings", "topics")

    def __init__(
        self,
        settings: BrokerSettings,
        counters: Counters,
        memory: QueueMemory,
        deadlines: Deadlines,
    ) -> None:
        self.settings = settings
        self.counters = counters
        self.memory = memory
        self.deadlines = deadlines
        self.topics = 0
        self.bytes = 0
        self.members: dict[Session, Conflated] = {}

    def conflate(self, session: Session) -> None:
        """Let a `Conflated` receive the messages of a session's subscriptions from now on."""
        session.conflated = self.members[session] = Conflated(session, self)

    def release(
        self, session: Session, topic_filters: Iterable[str], instant: Instant
    ) -> Generator[float | None, Instant, Instant]:
        """Give a conflated session the held messages of topics that match, before that changes.

        That is done in pieces; returns the instant of the last.
        """
        member, piece = self.members[session], Piece()
        for topic_filter in topic_filters:
            if piece.ends_with(topic_filter):
                instant = yield None
            instant = yield from member.flush_matching(topic_filter, instant)
        return instant

    def flush(self, now: float) -> None:
        """Give all sessions their held messages, before the gateway stops."""
        for member in self.members.values():
            member.flush(now)


class Conflated(Session):
    """Receives messages in a session's place, and passes on those that are due.

    Those are a topic's first message, and after each `$every` the newest that arrived since. The
    newest waits longer while the client does not read its output.
    """

    __slots__ = ("_alarm", "_all", "_bytes", "_heap", "_order", "_session", "_topics")

    def __init__(self, session: Session, conflation: Conflation) -> None:
        super().__init__(session.client_id, session.counters, session.limits, session.traffic)
        self._session = session
        self._all = conflation
        self._topics: dict[str, Topic] = {}
        self._heap: list[tuple[float, int, Topic]] = []  # by a second that is not after `due`
        self._order = 0  # of topics that are due in the same moment
        self._alarm = math.inf  # the monotonic second at which the timer runs
        self._bytes = 0

    def accept(
        self,
        publication: Publication,
        first: int,
        count: int,
        qos: int,
        retain: bool = False,
        subscription_identifiers: tuple[int, ...] = (),
        now: float = 0.0,
        reserved: bool = False,  # noqa: ARG002 - a session's signature; no capacity was reserved
        topic_filter: str = "",  # noqa: ARG002 - likewise; no shared subscription calls this
        policy: DeliveryPolicy | None = None,
    ) -> None:
        """Give the session the messages that are due, and hold the newest of each topic.

        The `policy` gives the interval; 0.0 makes every message due.
        """
        if self._session.connection is None and not (qos and self._session.persistent):
            return
        number, end = first, first + count
        while number < end:
            name = publication.topic_of(number)
            span = Span(publication, number, 1, qos, retain, subscription_identifiers)
            self._send_or_hold(name, span, policy, now)
            number += 1
            if end - number > 1 and not publication.mixed and self._holds(name):
                self._count_superseded(end - number - 1)  # the last is the newest of its topic
                number = end - 1

    def _holds(self, name: str) -> bool:
        topic = self._topics.get(name)
        return topic is not None and topic.span is not None

    def _send_or_hold(
        self, name: str, span: Span, policy: DeliveryPolicy | None, now: float
    ) -> None:
        """Give the session a message, or hold it."""
        every = 0.0 if policy is None else policy.every
        topic = self._topics.get(name)
        new = topic is None and every > 0
        if new:
            if not self._has_capacity():
                self._all.counters.add("tidegate/conflated/not_held")
                self._pass_on(span, policy, now)
                return
            topic = self._begin(name, now)
        if topic is None:
            self._pass_on(span, policy, now)
            return
        self._supersede(topic)
        topic.every = every or topic.every
        if every and (topic.due > now or not self._is_clear()) and self._has_memory():
            self._hold(topic, span, policy)
        else:
            if every and (topic.due > now):
                self._all.counters.add("tidegate/conflated/not_held")
            topic.due = now + topic.every
            self._pass_on(span, policy, now)
        if new:
            self._push(topic, topic.due)
            self._wake_at(topic.due)

    def _is_clear(self) -> bool:
        """Return whether the session can send what it gets now."""
        session = self._session
        return session.connection is None or session.clear_connection() is not None

    def _has_capacity(self) -> bool:
        """Return whether there may be one more topic."""
        settings = self._all.settings
        return (
            len(self._topics) < settings.maximum_conflated_topics
            and self._all.topics < settings.maximum_conflated_topics_total
            and self._has_memory()
        )

    def _has_memory(self) -> bool:
        """Return whether another message may be held; the last may exceed the bound."""
        memory = self._all.memory
        maximum = memory.maximum_bytes // MEMORY_PART
        return (
            not memory.full and self._all.bytes < maximum and self._bytes < maximum // MEMORY_PART
        )

    def _begin(self, name: str, now: float) -> Topic:
        topic = self._topics[name] = Topic(name, now)
        self._all.topics += 1
        self._all.memory.charge(topic.size)
        self._charge(topic.size)
        return topic

    def _forget(self, topic: Topic) -> None:
        """Forget a topic without a held message."""
        del self._topics[topic.name]
        self._all.topics -= 1
        self._all.memory.charge(-topic.size)
        self._charge(-topic.size)

    def _charge(self, size: int) -> None:
        self._bytes += size
        self._all.bytes += size

    def _hold(self, topic: Topic, span: Span, policy: DeliveryPolicy | None) -> None:
        """Hold a message of a topic without one."""
        # a copy, or it would keep its whole packet batch in memory
        one = span.publication.one(span.first)
        topic.span = Span(one, 0, 1, span.qos, span.retain, span.subscription_identifiers)
        topic.policy = policy
        self._all.memory.add(topic.span)
        self._charge(topic.span.size)

    def _remove(self, topic: Topic) -> Span | None:
        """Return and forget a topic's held message."""
        span, topic.span = topic.span, None
        if span is not None:
            self._all.memory.remove(span)
            self._charge(-span.size)
        return span

    def _supersede(self, topic: Topic) -> None:
        """Drop a topic's held message for a newer one."""
        if self._remove(topic) is not None:
            self._count_superseded(1)

    def _count_superseded(self, count: int) -> None:
        self._all.counters.add("tidegate/conflated/superseded", count)

    def _pass_on(self, span: Span, policy: DeliveryPolicy | None, now: float) -> None:
        """Give the session a message."""
        self._session.accept(
            span.publication,
            span.first,
            1,
            span.qos,
            span.retain,
            span.subscription_identifiers,
            now,
            policy=policy if policy is not None and policy.own else None,
        )

    def _send_held(self, topic: Topic, now: float) -> None:
        """Give the session a topic's held message, unless it has expired or may not be read."""
        span, session = self._remove(topic), self._session
        if span is None:
            return
        access = session.access
        if span.publication.expired(now):
            session.counters.add("publish/messages/expired")
            session.note_drop("expired", 1)
        elif (access.restricted or topic.name.startswith("$")) and not (
            access.rights(topic.name) & READ
        ):
            session.counters.add("tidegate/access/withheld")
        else:
            self._pass_on(span, topic.policy, now)

    def flush(self, now: float) -> None:
        """Give the session all held messages."""
        for topic in self._topics.values():
            self._send_held(topic, now)

    def flush_matching(
        self, topic_filter: str, instant: Instant
    ) -> Generator[float | None, Instant, Instant]:
        """Give the session the held messages of topics that match, and forget these topics."""
        wild = "+" in topic_filter or "#" in topic_filter
        for number, name in enumerate([*self._topics] if wild else [topic_filter], 1):
            topic = self._topics.get(name)
            if topic is not None and (not wild or topic_matches(topic_filter, name)):
                self._send_held(topic, instant.monotonic)
                self._forget(topic)
            if number % AT_ONCE == 0:
                instant = yield None
        if len(self._heap) > len(self._topics):
            known = self._topics.get
            self._heap = [each for each in self._heap if known(each[2].name) is each[2]]
            heapq.heapify(self._heap)
        return instant

    def _push(self, topic: Topic, second: float) -> None:
        self._order += 1
        heapq.heappush(self._heap, (second, self._order, topic))

    def _wake_at(self, second: float) -> None:
        """Set the timer to a monotonic second, unless it runs before."""
        if second < self._alarm:
            self._alarm = second
            self._all.deadlines.set(self, second, self._run)

    def _run(self, _: "Conflated", instant: Instant) -> None:
        """Send what is due, as far as the turn and the client allow."""
        now, heap, left = instant.monotonic, self._heap, AT_ONCE
        self._alarm = math.inf
        clear = True
        while heap and heap[0][0] <= now and left and clear:
            topic = heapq.heappop(heap)[2]
            left -= 1
            if self._topics.get(topic.name) is not topic:
                continue  # it was released
            if topic.due > now:
                self._push(topic, topic.due)
            elif topic.span is None:
                self._forget(topic)
            elif self._is_clear():
                self._send_held(topic, now)
                topic.due = now + topic.every
                self._push(topic, topic.due)
            else:
                self._push(topic, now)
                clear = False
        self._wake_again(instant, clear=clear)

    def _wake_again(self, instant: Instant, *, clear: bool) -> None:
        """Set the timer for what is due next."""
        if not self._heap:
            return
        now, (second, _, topic) = instant.monotonic, self._heap[0]
        if not clear:
            second = now + RETRY
        elif second <= now:
            second = math.nextafter(now, math.inf)  # the next turn
        else:
            second = max(second, now + min(STEP, LATE * topic.every))
        self._alarm = math.inf
        self._wake_at(second)

    def discard(self) -> None:
        """Forget everything: the session has ended."""
        spans = [each.span for each in self._topics.values() if each.span is not None]
        self._all.memory.release(spans)
        self._all.memory.charge(-sum(each.size for each in self._topics.values()))
        self._all.topics -= len(self._topics)
        self._charge(-self._bytes)
        self._topics, self._heap = {}, []
        self._all.deadlines.discard(self)
        del self._all.members[self._session]
