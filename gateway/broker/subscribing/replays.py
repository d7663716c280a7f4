"""Sends retained messages for new subscriptions, a bounded number in each turn.

The rest is sent in later turns, in which subscribers alternate. Before a topic's new message is
published, its retained message is sent to all who still wait for it (`Replays.send_first`). So
nothing older follows something newer, except after a crash in between.
"""

import math
from collections import OrderedDict
from typing import Final

from gateway.access.rule import READ
from gateway.broker.deadlines import Deadlines
from gateway.broker.instant import Instant
from gateway.counters import Counters
from gateway.mqtt.message import ORDINARY
from gateway.mqtt.publication import Publication
from gateway.mqtt.topics import topic_matches
from gateway.routing.budget import EVALUATION, PARSED, Budget
from gateway.routing.retained.retained import Cursor, RetainedMessages
from gateway.routing.subscriptions.subscription import Subscription
from gateway.session.restored import StoredSubscription
from gateway.session.session import Session

SINGLE = 4
"""The cost of a message that is filtered or cannot be written together with others, in messages."""

MAXIMUM_UNSENT = 64 * 1024
"""Bytes of unread output above which a client's replays wait, too."""

MAXIMUM_QUEUED = 1_000
"""Unsent messages of any kind above which a client's replays wait, too."""


class Replay:
    """A replay's state; its `cursor` is how far it has come."""

    __slots__ = ("cursor", "noted", "scans", "session", "stored", "subscription")

    def __init__(
        self,
        session: Session,
        subscription: Subscription,
        stored: StoredSubscription,
        cursor: Cursor,
    ) -> None:
        self.session = session
        self.subscription = subscription
        self.stored = stored
        self.cursor = cursor
        self.scans = False  # the cursor moves; otherwise it is all done in one turn
        self.noted = stored.awaits_retained  # the session's journal has a note of it

    @property
    def survives(self) -> bool:
        """Whether the session gets these messages even after a disconnection."""
        return self.subscription.qos > 0 and self.session.persistent

    @property
    def cost(self) -> int:
        """The cost of each of its messages, in messages."""
        subscription = self.subscription
        return SINGLE if subscription.qos or subscription.where is not None else 1

    def can_accept(self) -> bool:
        """Return whether the session accepts messages now.

        Durable ones go to its queue in any case, and so to disk.
        """
        session = self.session
        connection = session.connection
        return (
            connection is not None
            and connection.output.size < MAXIMUM_UNSENT
            and session.queue.messages - session.queue.held_back < MAXIMUM_QUEUED
        ) or self.survives

    def note(self, *, awaits_retained: bool) -> None:
        """Note in the session's journal whether it still awaits retained messages."""
        stored = self.stored._replace(awaits_retained=awaits_retained)
        self.session.journal.subscribe(stored.topic_filter, stored)
        self.noted = awaits_retained


TURN_MESSAGES = 2_000
"""Retained messages that are replayed in one turn, to all subscribers together: some 2 ms."""

TURN_BYTES = 512 * 1024
"""Bytes of their payloads in a turn; the last may exceed it."""

TURN_WORK = 4_000_000
"""Work of their filters in a turn; the last may exceed it, as in a piece of a message's
(`routing/budget.py`)."""

SCANNED_AS_ONE = 8
"""Messages that are only compared, not sent, that cost as much as one."""

PROBED = 16
"""Names that are compared to find out if there is anything to send, in a turn that is full."""

MAXIMUM_OF_ONE = 100
"""Waiting replays of one session: each is checked for each message that is published meanwhile.
Further filters of a SUBSCRIBE begin when one of these is done."""

SYS: Final = "$SYS/"
"""What the topic filters of figures begin with."""

_KEY: Final = "replays"


class Replays:
    """All replays that wait for later turns, by session.

    Sessions that can accept messages are in a ring; the others return to it when they have capacity
    (`Session.on_capacity`).
    """

    __slots__ = (
        "_budget",
        "_bytes",
        "_counters",
        "_deadlines",
        "_messages",
        "_retained",
        "_ring",
        "_turn",
        "_waiting",
        "_work",
        "count",
        "maximum_of_one",
        "turn_messages",
    )

    def __init__(
        self,
        retained: RetainedMessages,
        budget: Budget,
        deadlines: Deadlines,
        counters: Counters,
    ) -> None:
        self._retained = retained
        self._budget = budget
        self._deadlines = deadlines
        self._counters = counters
        self.turn_messages = TURN_MESSAGES
        self.maximum_of_one = MAXIMUM_OF_ONE
        self._waiting: dict[Session, dict[str, Replay]] = {}  # by topic filter
        self._ring: OrderedDict[Session, None] = OrderedDict()
        self._turn = -math.inf  # monotonic second
        self._messages = 0  # that this turn may still send
        self._bytes = 0
        self._work = 0
        self.count = 0  # of waiting replays

    def begin(
        self,
        session: Session,
        subscription: Subscription,
        stored: StoredSubscription,
        instant: Instant,
    ) -> None:
        """Send a new subscription its retained messages, in this turn as far as its limits allow.

        `stored` is the subscription in the session's journal. If messages remain for later turns
        and must survive a crash, the journal notes that, too: after a crash all of them are resent.
        """
        self.discard(session, subscription.topic_filter)
        one = Replay(session, subscription, stored, self._retained.log.open())
        self._begin_turn(instant)
        if self._ring:
            self._messages = 0  # those in the ring have waited longer
        if not (one.can_accept() and self._advance(one, instant)):
            self._wait(one, instant)
            return
        self._retained.log.close(one.cursor)
        if one.noted:
            one.note(awaits_retained=False)

    def crowded(self, session: Session) -> bool:
        """Return whether the session has as many waiting replays as it may."""
        return len(self._waiting.get(session, ())) >= self.maximum_of_one

    def follow(
        self, session: Session, subscription: Subscription, stored: StoredSubscription
    ) -> None:
        """Continue with a subscription that replaced another and requests no replay of its own."""
        one = self._waiting.get(session, {}).get(subscription.topic_filter)
        if one is not None:
            one.subscription, one.stored = subscription, stored
            self._note(one)

    def discard(self, session: Session, topic_filter: str) -> None:
        """Cancel the replay of a subscription that is removed or replayed again."""
        one = self._waiting.get(session, {}).get(topic_filter)
        if one is not None:
            self._remove(one)

    def discard_all(self, session: Session) -> None:
        """Cancel all replays of a session that ends."""
        for one in [*self._waiting.get(session, {}).values()]:
            self._remove(one)

    def disconnect(self, session: Session, instant: Instant) -> None:
        """Cancel the replays that a session without a connection no longer gets."""
        for one in [*self._waiting.get(session, {}).values()]:
            if not one.survives:
                self._remove(one)
        if session in self._waiting:
            self.ready(session, instant.monotonic)

    def ready(self, session: Session, now: float) -> None:
        """Continue a session's replays, if it has capacity; `now` is monotonic seconds."""
        if session not in self._ring and self._first(session).can_accept():
            self._ring[session] = None
            self._deadlines.set(_KEY, now, self._go_on)

    def send_first(self, topic: str, instant: Instant) -> None:
        """Send a topic's retained message to all whose replays have not reached it yet.

        This comes before another message of the topic is delivered: afterwards the retained one
        would be out of order, or already replaced.
        """
        log = self._retained.log
        if not log.is_ahead(topic):
            return
        index = log.index(topic)
        for waiting in self._waiting.values():
            for topic_filter, one in waiting.items():
                ahead = one.cursor.index <= index < one.cursor.end
                if ahead and topic_matches(topic_filter, topic):
                    found = self._retained.find(topic, instant.monotonic)
                    self._begin_turn(instant)
                    _, size, wanted = self._wanted(one, found, at_once=True)
                    self._send(one, found, wanted, size, instant)
        # behind all cursors, so that no replay sends it twice
        log.renew(topic)

    def _go_on(self, _: str, instant: Instant) -> None:
        """Let the sessions of the ring alternate."""
        self._begin_turn(instant)
        ring = self._ring
        while ring and self._messages > 0:
            session = next(iter(ring))
            one = self._first(session)
            if not one.can_accept():
                del ring[session]
                continue
            done = self._advance(one, instant)
            if done:
                self._remove(one)
                if one.noted:
                    one.note(awaits_retained=False)
            # otherwise it stays in front, for a whole turn
            if session in ring and (done or one.scans):
                ring.move_to_end(session)
        if ring:
            self._deadlines.set_next(_KEY, instant, self._go_on)

    def _begin_turn(self, instant: Instant) -> None:
        if instant.monotonic != self._turn:
            self._turn = instant.monotonic
            self._messages, self._bytes = self.turn_messages, TURN_BYTES
            self._work = TURN_WORK

    def _advance(self, one: Replay, instant: Instant) -> bool:
        """Send as much as the turn allows; return whether the replay is done.

        If all matching messages fit into one turn, they are sent in one, without a scan of other
        topics.
        """
        retained, cursor = self._retained, one.cursor
        if not one.scans:
            most = self.turn_messages // one.cost if self._messages > 0 else PROBED
            found = retained.few(one.subscription.topic_filter, cursor, most, instant.monotonic)
            if found is not None:
                if not found:  # most subscriptions match no retained message
                    return True
                fitting, size, wanted = self._fitting(one, found)
                if fitting == len(found):
                    self._send(one, found, wanted, size, instant)
                    return True
                if self._work <= 0:
                    # its filter needs several turns; a scan begins at the first message
                    one.scans = True
                    self._messages = 0
            if self._messages <= 0 or (found is not None and self._messages < self.turn_messages):
                self._messages = 0  # continue when a whole turn is available
                return False
            one.scans = True
        while self._messages > 0 and not cursor.done:
            self._send_some(one, instant)
        return cursor.done

    def _send_some(self, one: Replay, instant: Instant) -> None:
        """Send the next messages at the cursor."""
        retained, cursor, cost = self._retained, one.cursor, one.cost
        before = cursor.index
        most = max(1, self._messages // cost)
        found = retained.read(one.subscription.topic_filter, cursor, most, instant.monotonic)
        fitting, size, wanted = self._fitting(one, found)
        if fitting < len(found):
            # continue at the first message that did not fit
            cursor.index = retained.log.index(found[fitting].topic)
            del found[fitting:]
        self._send(one, found, wanted, size, instant)
        if self._work <= 0:
            self._messages = 0
        self._messages -= (cursor.index - before - fitting) // SCANNED_AS_ONE + 1

    def _fitting(
        self, one: Replay, messages: list[Publication]
    ) -> tuple[int, int, list[Publication]]:
        """Return how many of the messages fit into this turn, their bytes, and the wanted ones.

        All are wanted, unless the subscription has a filter.
        """
        free, size = self._bytes, 0
        most = min(len(messages), max(0, -(-self._messages // one.cost)))
        for number in range(most):
            if size >= free:
                most = number
                break
            size += payload_bytes(messages[number])
        if one.subscription.where is not None:
            return self._wanted(one, messages[:most])
        return most, size, messages[:most]

    def _wanted(
        self, one: Replay, messages: list[Publication], *, at_once: bool = False
    ) -> tuple[int, int, list[Publication]]:
        """Return how many of the messages were evaluated, their bytes, and which are wanted.

        With `at_once` all are evaluated: a filter that exceeds its work then gives NULL.
        """
        where, session = one.subscription.where, one.session
        evaluate = self._budget.replayed
        size = 0
        wanted: list[Publication] = []
        for number, each in enumerate(messages):
            if self._work <= 0 and not at_once:
                return number, size, wanted
            bytes_of_one = payload_bytes(each)
            size += bytes_of_one
            if self._withholds(one, each):
                continue
            passed = True
            if where is not None:
                most = max(self._work, ORDINARY) if at_once else EVALUATION
                passed, work = evaluate(where, each.new_message(0), session.client_id, most)
                self._work -= work + PARSED * bytes_of_one
            if passed:
                wanted.append(each)
        return len(messages), size, wanted

    def _withholds(self, one: Replay, message: Publication) -> bool:
        """Return whether the subscriber may not get a message, whatever its content."""
        subscription, access = one.subscription, one.session.access
        if subscription.no_local and message.client_id == one.session.client_id:
            return True  # [MQTT-3.8.3-3]
        restricted = access.restricted or subscription.topic_filter.startswith("$")
        return bool(restricted and not access.rights(message.topic) & READ)

    def _send(
        self,
        one: Replay,
        messages: list[Publication],
        wanted: list[Publication],
        size: int,
        instant: Instant,
    ) -> None:
        """Send, queue or drop the `wanted` messages; `size` is the bytes of all."""
        session, subscription = one.session, one.subscription
        self._messages -= len(messages) * one.cost
        self._bytes -= size
        if self._bytes <= 0:
            self._messages = 0
        if subscription.where is None:
            wanted = [each for each in wanted if not self._withholds(one, each)]
        identifier = subscription.identifier
        identifiers = () if identifier is None else (identifier,)
        qos, now = subscription.qos, instant.monotonic
        traffic = session.traffic
        sent, octets = traffic.messages_sent, traffic.bytes_sent
        for each in wanted:
            # RETAIN is set on what is sent because of a SUBSCRIBE [MQTT-3.3.1-8]
            session.accept(
                each,
                0,
                1,
                min(qos, each.qos),
                retain=True,
                subscription_identifiers=identifiers,
                now=now,
            )
        if subscription.topic_filter.startswith(SYS):  # counted apart, as those that follow are
            self._counters.add("tidegate/sys/messages_sent", traffic.messages_sent - sent)
            self._counters.add("tidegate/sys/bytes_sent", traffic.bytes_sent - octets)

    def _first(self, session: Session) -> Replay:
        """Return the session's next replay."""
        return next(iter(self._waiting[session].values()))

    def _wait(self, one: Replay, instant: Instant) -> None:
        """Continue a replay in later turns."""
        session = one.session
        self._waiting.setdefault(session, {})[one.subscription.topic_filter] = one
        self.count += 1
        self._counters.add("tidegate/replays/deferred")
        session.on_capacity = self.ready
        self._note(one)
        self.ready(session, math.nextafter(instant.monotonic, math.inf))

    def _remove(self, one: Replay) -> None:
        """Remove a waiting replay."""
        session = one.session
        waiting = self._waiting[session]
        del waiting[one.subscription.topic_filter]
        self.count -= 1
        self._retained.log.close(one.cursor)
        if not waiting:
            del self._waiting[session]
            # the session would call this after each acknowledgement
            session.on_capacity = None
            self._ring.pop(session, None)

    def _note(self, one: Replay) -> None:
        """Note in the journal that the replay must begin again after a crash, if it must."""
        if one.survives:
            one.note(awaits_retained=True)


def payload_bytes(publication: Publication) -> int:
    """Return the bytes of a retained message's payload."""
    return publication.packets.payload_bytes(0, 1)
